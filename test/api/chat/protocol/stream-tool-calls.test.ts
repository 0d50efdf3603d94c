import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { askForStream } from '../../../support/chat/chat-stream.ts'
import { startScriptedChat, type ScriptedChat } from '../../../support/chat/chat.ts'
import { chunk, completion, json, sse, stream } from '../../../support/chat/upstream.ts'

let chat: ScriptedChat

beforeAll(async () => {
  chat = await startScriptedChat()
})

afterAll(() => chat.stop())

/** The calls that a client assembles from a stream. */
function assemble(deltas: readonly unknown[]) {
  const partSchema = z.object({
    index: z.int(),
    id: z.string().optional(),
    type: z.literal('function').optional(),
    function: z.object({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
  })
  const deltaSchema = z.object({ tool_calls: z.array(partSchema).optional() })
  const calls: { id: string; name: string; arguments: string }[] = []
  for (const part of deltas.flatMap((delta) => deltaSchema.parse(delta).tool_calls ?? [])) {
    const call = (calls[part.index] ??= { id: '', name: '', arguments: '' })
    call.id += part.id ?? ''
    call.name += part.function?.name ?? ''
    call.arguments += part.function?.arguments ?? ''
  }
  return calls
}

const part = (index: number | undefined, id: string | undefined, text: string, name?: string) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id, type: 'function' }),
  function: { ...(name === undefined ? {} : { name }), arguments: text },
})

const bare = (name: string, text: string) => ({ function: { ...(name && { name }), arguments: text } })

describe('tool calls of a stream', () => {
  it.each([
    [
      'as they should be',
      [part(0, 'a', '', 'f'), part(0, undefined, '{"x"'), part(0, undefined, ':1}'), part(1, 'b', '{}', 'g')],
    ],
    ['all with index 0', [part(0, 'a', '{"x":1}', 'f'), part(0, 'b', '{}', 'g')]],
    [
      'without index',
      [part(undefined, 'a', '{"x"', 'f'), part(undefined, undefined, ':1}'), part(undefined, 'b', '{}', 'g')],
    ],
    ['with the id in every part', [part(0, 'a', '{"x"', 'f'), part(0, 'a', ':1}'), part(1, 'b', '{}', 'g')]],
    ['counted from 1', [part(1, 'a', '{"x":1}', 'f'), part(2, 'b', '{}', 'g')]],
    ['with empty ids later on', [part(0, 'a', '{"x"', 'f'), part(0, '', ':1}'), part(1, 'b', '{}', 'g')]],
    [
      'in turns',
      [part(0, 'a', '{"x"', 'f'), part(1, 'b', '{', 'g'), part(0, undefined, ':1}'), part(1, undefined, '}')],
    ],
  ])('%s are two', async (_name, parts) => {
    const chunks = [...parts.map((one) => chunk({ tool_calls: [one] })), chunk({}, 'tool_calls')]
    const { deltas, last } = await askForStream(chat, stream(sse(chunks)))
    expect(assemble(deltas)).toEqual([
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { id: 'b', name: 'g', arguments: '{}' },
    ])
    expect(last?.choices[0]?.finish_reason).toBe('tool_calls')
  })

  it.each([
    ['without id and index, in one delta', [[bare('f', '{"x":1}'), bare('g', '{}')]]],
    ['without id and index, one after another', [[bare('f', '{"x"')], [bare('', ':1}')], [bare('g', '{}')]]],
    [
      'with one index and empty ids',
      [[{ index: 0, id: '', ...bare('f', '{"x":1}') }], [{ index: 0, id: '', ...bare('g', '{}') }]],
    ],
    [
      'with one index and the name in every part',
      [
        [{ index: 0, ...bare('f', '{"x"') }],
        [{ index: 0, ...bare('f', ':1}') }],
        [{ index: 0, ...bare('g', '{}') }],
      ],
    ],
  ])('%s are two', async (_name, deltas) => {
    const chunks = [...deltas.map((calls) => chunk({ tool_calls: calls })), chunk({}, 'tool_calls')]
    const asked = await askForStream(chat, stream(sse(chunks)))
    expect(assemble(asked.deltas).map((one) => one.arguments)).toEqual(['{"x":1}', '{}'])
    expect(assemble(asked.deltas).at(-1)).toMatchObject({
      name: 'g',
      id: expect.stringMatching(/^call_\w{32}$/),
    })
  })

  it('without id and index in one delta are two, before any of their arguments', async () => {
    const chunks = [chunk({ tool_calls: [bare('f', ''), bare('g', '')] }), chunk({}, 'tool_calls')]
    const { deltas } = await askForStream(chat, stream(sse(chunks)))
    expect(assemble(deltas).map(({ name }) => name)).toEqual(['f', 'g'])
  })

  it('of a whole reply that is sent as a stream stay apart', async () => {
    const message = { role: 'assistant', content: null, tool_calls: [bare('f', '{'), bare('g', '{}')] }
    const reply = completion(null, { choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
    const { deltas } = await askForStream(chat, json(reply))
    expect(assemble(deltas)).toMatchObject([
      { name: 'f', arguments: '{' },
      { name: 'g', arguments: '{}' },
    ])
  })

  it('get an id where the provider gives none, and arguments as text', async () => {
    const call = { index: 0, function: { name: 'f', arguments: { x: 1 } } }
    const { deltas } = await askForStream(
      chat,
      stream(sse([chunk({ tool_calls: [call] }), chunk({}, 'tool_calls')])),
    )
    expect(assemble(deltas)).toEqual([
      { id: expect.stringMatching(/^call_\w{32}$/), name: 'f', arguments: '{"x":1}' },
    ])
  })

  it('keep their arguments byte for byte, however they are split', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json(), fc.array(fc.nat({ max: 20 }), { maxLength: 6 }), async (text, cuts) => {
        const pieces: string[] = []
        let rest = text
        for (const cut of cuts) {
          pieces.push(rest.slice(0, cut))
          rest = rest.slice(cut)
        }
        const parts = [part(0, 'a', '', 'f'), ...[...pieces, rest].map((one) => part(0, undefined, one))]
        const chunks = [...parts.map((one) => chunk({ tool_calls: [one] })), chunk({}, 'tool_calls')]
        const { deltas } = await askForStream(chat, stream(sse(chunks)))
        expect(assemble(deltas)).toEqual([{ id: 'a', name: 'f', arguments: text }])
      }),
      { numRuns: 30 },
    )
  })
})
