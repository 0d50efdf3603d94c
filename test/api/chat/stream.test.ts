/** CONTRACT 6: the course of a stream: its form, silence, and the connections to the client and to the provider. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { readText, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import { readChunks, UNHURRIED } from '../../support/chat/provider-case.ts'
import {
  answers,
  chunk,
  chunksOf,
  ends,
  endsWith,
  events,
  held,
  inTurn,
  USAGE,
  type Behaviour,
} from '../../support/chat/upstream.ts'

const word = (content: string) => chunk({ content })
const withoutEnd: Behaviour = () => undefined

/** More than all buffers between a provider and a client hold. */
const MUCH = 400
const WORD = 'x'.repeat(50_000)
const words = Array.from({ length: MUCH }, () => word(WORD))
/** How long that provider may be silent. */
const IDLE_MS = 2500

let chat: ScriptedChat

beforeAll(async () => {
  chat = await startScriptedChat({
    behaviours: { talkative: events(...words) },
    models: {
      'a/one': [{ timeouts: UNHURRIED }],
      'a/impatient': [{ model: 'talkative', timeouts: { ...UNHURRIED, idle_ms: IDLE_MS } }],
    },
    modelLimits: { total_ms: UNHURRIED.total_ms },
  })
})

/** The reply to a streamed request, while the provider behaves like this. */
function post(behaviour: Behaviour, more: Readonly<Record<string, unknown>> = {}): Promise<Response> {
  chat.script(behaviour)
  return chat.api.ask({ stream: true, ...more })
}

describe('a stream', () => {
  it('has its usage in a chunk of its own, after the finish, if the request asks for it as for OpenAI', async () => {
    const response = await post(answers(), { stream_options: { include_usage: true } })
    const { chunks, isWhole } = readChunks(await response.text())
    expect(isWhole).toBe(true)
    const [finish, last] = chunks.slice(-2)
    expect(finish).toMatchObject({ choices: [{ finish_reason: 'stop' }] })
    expect(finish).not.toHaveProperty('usage')
    expect(last).toMatchObject({ choices: [], usage: USAGE })
  })

  it('that begins with many chunks of nothing still has its first token', async () => {
    const nothings = Array.from({ length: 1000 }, () => chunk({ role: 'assistant', content: '' }))
    const { chunks, content } = readChunks(
      await (await post(endsWith(...nothings, ...chunksOf(['Hello'])))).text(),
    )
    expect(content).toBe('Hello')
    // 64 of them, the word, and the end.
    expect(chunks).toHaveLength(66)
  })

  it.concurrent(
    'to a client that reads slowly is not cut for that, but later for its own silence',
    async () => {
      const warnings: string[] = []
      const note = ({ name }: Error) => void warnings.push(name)
      process.on('warning', note)
      const response = await chat.api.ask({ model: 'a/impatient', stream: true })
      // Longer than the provider may be silent.
      await sleep(IDLE_MS + 1000)
      const { text } = await readText(response)
      process.off('warning', note)
      expect(readChunks(text).content).toHaveLength(MUCH * WORD.length)
      expect(text.slice(-1000)).toContain('did not answer in time')
      // Each wait removes its listeners: Node warns of listeners that pile up.
      expect(warnings).not.toContain('MaxListenersExceededWarning')
    },
  )
})

describe('in silence', () => {
  let waiting: ScriptedChat
  beforeAll(async () => {
    waiting = await startScriptedChat({ chat: { silenceMs: 20 } })
  })

  /** A streamed request; the provider goes on each time after two more chunks without content. */
  async function ask(...[first, second = withoutEnd]: readonly Behaviour[]) {
    const inner = held(first ?? withoutEnd, second)
    const { behaviour, goOn } = held(withoutEnd, inner.behaviour)
    waiting.script(behaviour)
    const headers = { 'HTTP-Referer': 'https://slow.example' }
    const response = await waiting.api.ask({ stream: true }, { headers })
    // Its head goes out before any provider serves.
    expect(Number(response.headers.get('X-App-Id'))).toBeGreaterThan(0)
    return await readText(response, (text) => {
      const [before = '', after = ''] = text.split('Hel')
      if (before.split('"delta":{}').length > 2) goOn()
      if (after.split('"delta":{}').length > 2) inner.goOn()
    })
  }

  it('a client gets empty chunks of the same reply, before and between its words', async () => {
    const { text } = await ask(events(word('Hel')), endsWith(word('lo'), chunk({}, 'stop')))
    const { chunks, content, isWhole } = readChunks(text)
    expect({ content, isWhole }).toEqual({ content: 'Hello', isWhole: true })
    // Comments end the streams of some clients.
    expect(text).not.toMatch(/^:/m)
    expect(chunks[0]).toMatchObject({
      model: 'a/one',
      choices: [{ index: 0, delta: {}, finish_reason: null }],
    })
  })

  it('an error is reported after such chunks', async () => {
    const { text, isBroken } = await ask(endsWith())
    expect(text).toMatch(/\ndata: \{"error":\{"code":502/)
    expect(isBroken).toBe(true)
  })
})

describe('the connection to a provider', () => {
  const failing = { error: { code: 'server_error' } }
  it.each([
    ['[DONE]', [...chunksOf(['Hello']), '[DONE]']],
    ['[DONE] before any token', [chunk({ role: 'assistant' }), '[DONE]']],
    ['an error', [word('Hel'), failing]],
    ['an error before any token', [failing]],
  ])('is closed after %s, though the provider leaves it open', async (_name, chunks) => {
    const closed = Promise.withResolvers<unknown>()
    await readText(
      await post(inTurn((response) => closed.resolve(once(response, 'close')), events(...chunks))),
    )
    await closed.promise
  })

  /** Without a keep-alive time, connections that close within a second are not used again. */
  const keepAlive: Behaviour = (response) => void response.setHeader('Connection', 'keep-alive')

  it.each([1, 1000])('of a stream of %i words serves the next request', async (length) => {
    const lines = Array.from({ length }, () => 'x'.repeat(100))
    const connections = new Set<number | undefined>()
    const requests = 10
    const begin = inTurn(
      keepAlive,
      ({ socket }) => void connections.add(socket?.remotePort),
      events(...chunksOf(lines), '[DONE]'),
    )
    const { behaviour, goOn } = held(begin, ends(''))
    for (let request = 0; request < requests; request++) {
      // The provider ends its reply late.
      await readText(await post(behaviour), (read) => void (read.includes('[DONE]') && goOn()))
    }
    expect(connections.size).toBeLessThan(requests)
  })

  it.each<[string, Behaviour]>([
    ['is reset', (response) => void response.socket?.resetAndDestroy()],
    ['is closed', (response) => void response.socket?.destroy()],
  ])('that %s as it is used again is replaced, a new one is not', async (_name, breaking) => {
    const serving = inTurn(keepAlive, answers())
    const steps = [serving, breaking, serving]
    await using fresh = await startScriptedChat()
    fresh.script((response, received) => (steps.shift() ?? breaking)(response, received))
    expect([(await fresh.api.ask()).status, (await fresh.api.ask()).status]).toEqual([200, 200])
    expect(fresh.upstream.received).toHaveLength(3)
    await using other = await startScriptedChat()
    other.script(breaking)
    expect((await other.api.ask()).status).toBe(502)
    expect(other.upstream.received).toHaveLength(1)
  })
})
