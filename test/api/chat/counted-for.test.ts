/** Each reply names the app it counts for, and each record has the reported tokens (CONTRACT 6). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import {
  answers,
  chunksOf,
  completion,
  json,
  sse,
  status,
  stream,
  type Behaviour,
} from '../../support/chat/upstream.ts'

let chat: ScriptedChat
beforeAll(async () => {
  chat = await startScriptedChat()
})
afterAll(() => chat.stop())

const NAMED = { 'HTTP-Referer': 'https://app.example/chat', 'X-Title': 'An app' }
const LOCAL = { 'HTTP-Referer': 'http://localhost:3000', 'X-Title': 'A local app' }
const recordSchema = z.looseObject({ app_id: z.int(), requests: z.int() })
const METADATA = { 'X-Router-Metadata': 'enabled' }

async function ask(behaviour: Behaviour, streams: boolean, headers: Readonly<Record<string, string>> = {}) {
  chat.script(behaviour)
  const response = await chat.api.post({ model: 'a/one', messages: MESSAGES, stream: streams }, { headers })
  const text = await response.text()
  const record = recordSchema.parse(chat.records().at(-1))
  return { appId: response.headers.get('X-App-Id'), status: response.status, text, record }
}

describe.each([{ streams: false }, { streams: true }])('with stream: $streams, a reply', ({ streams }) => {
  it("names the app it counts for, from the app's first request on", async () => {
    const mine = { 'HTTP-Referer': `https://${streams ? 'streams' : 'asks'}.example` }
    for (const { appId, record } of [
      await ask(answers(), streams, mine),
      await ask(answers(), streams, mine),
    ]) {
      expect(record.app_id).toBeGreaterThan(0)
      expect(appId).toBe(String(record.app_id))
    }
  })

  it.each([
    ['that was served', answers(), 200],
    ['that every provider refused', status(400), 400],
    ['that no provider served', status(500), 502],
  ])('to a request without an app %s names app 0', async (_name, behaviour, code) => {
    const got = await ask(behaviour, streams)
    expect(got).toMatchObject({ appId: '0', status: code, record: { app_id: 0 } })
  })

  it('to a known app that no provider served names it too', async () => {
    const { record } = await ask(answers(), streams, NAMED)
    expect((await ask(status(500), streams, NAMED)).appId).toBe(String(record.app_id))
  })

  it.each([
    ['its address', NAMED, 'An app', 'address'],
    ['its title', LOCAL, 'A local app', 'title'],
  ])('describes with router metadata the app that %s named', async (_name, headers, name, foundBy) => {
    const { text, record } = await ask(answers(), streams, { ...headers, ...METADATA })
    expect(text).toContain(`"app":{"app_id":${record.app_id},"app_name":"${name}","found_by":"${foundBy}"}`)
  })

  it('reports with router metadata that nothing named an app', async () => {
    const { text } = await ask(answers(), streams, METADATA)
    expect(text).toContain('"app":{"app_id":0,"found_by":"nothing"}')
  })

  it('has a record with the parts of its tokens, and nulls for unreported ones', async () => {
    const usage = {
      prompt_tokens: 7,
      completion_tokens: 3,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 2 },
    }
    const reporting = streams ? stream(sse(chunksOf(['Hello'], usage))) : json({ ...completion(), usage })
    expect((await ask(reporting, streams)).record).toMatchObject({ reasoning_tokens: 2, cached_tokens: 5 })
    expect((await ask(answers(), streams)).record).toMatchObject({
      reasoning_tokens: null,
      cached_tokens: null,
    })
  })
})

it.each([
  ['serves at last', answers(), 1],
  ['fails at last', status(500), 0],
])(
  'a stream of a new app names it though a comment takes the head before its provider %s',
  async (name, behaviour, requests) => {
    const slow = await startScriptedChat({ chat: { silenceMs: 20 } })
    const { promise, resolve } = Promise.withResolvers<void>()
    slow.script(async (response, received) => {
      await promise
      await behaviour(response, received)
    })
    const mine = { 'HTTP-Referer': `https://${name.replaceAll(' ', '-')}.example` }
    const response = await slow.api.post(
      { model: 'a/one', messages: MESSAGES, stream: true },
      { headers: mine },
    )
    resolve()
    expect(await response.text()).toMatch(/^: waiting/)
    const record = recordSchema.parse(slow.records().at(-1))
    expect(record.requests).toBe(requests)
    expect(record.app_id).toBeGreaterThan(0)
    expect(response.headers.get('X-App-Id')).toBe(String(record.app_id))
    await slow.stop()
  },
)

it('a request with an unreadable body counts for app 0, and its reply has X-App-Id 0', async () => {
  expect((await chat.api.post('{')).headers.get('X-App-Id')).toBe('0')
})
