/** CONTRACT 6: which requests are rejected, with what message, and which are passed on. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chatRequestSchema, readChatRequest } from '../../../api/chat/request.ts'
import { ApiError } from '../../../api/http/errors.ts'

const messages = [{ role: 'user', content: 'Hello' }]
const fine = { model: 'a/one', messages }

/** A request with `list` at this place. */
function bodyWith(place: string, list: readonly unknown[]): unknown {
  const [, member] = /^messages\[0\]\.(\w+)$/.exec(place) ?? []
  if (member === undefined) return { ...fine, [place]: list }
  return { ...fine, messages: [{ role: 'assistant', [member]: list }] }
}

describe('readChatRequest', () => {
  it.each([
    ['no object', 'Hello', 'expected object'],
    ['null', null, 'expected object'],
    ['no messages', { model: 'a/one' }, 'messages'],
    ['empty messages', { ...fine, messages: [] }, 'messages'],
    ['no model', { messages }, 'model is missing'],
    ['an empty model', { ...fine, model: '' }, 'model'],
    ['models that are no list', { ...fine, models: 'a/one' }, 'models'],
    ['a message without role', { ...fine, messages: [{ content: 'x' }] }, 'messages[0].role'],
    ['a user without content', { ...fine, messages: [{ role: 'user' }] }, 'messages[0].content'],
    [
      'a tool result without its call',
      { ...fine, messages: [{ role: 'tool', content: 'x' }] },
      'tool_call_id',
    ],
    ['a stream that is no truth value', { ...fine, stream: 'yes' }, 'stream: '],
    [
      'a tool without name',
      { ...fine, tools: [{ type: 'function', function: {} }] },
      'tools[0].function.name',
    ],
    [
      'a tool of the form of Responses',
      { ...fine, tools: [{ type: 'function', name: 'f', parameters: {} }] },
      'tools[0].function: Expected an object with the name of the function; it is missing',
    ],
    ['a tool without type', { ...fine, tools: [{ function: { name: 'f' } }] }, 'tools[0].type'],
    ['a role that is sent back', { ...fine, messages: [{ role: 7 }] }, 'sent: 7'],
    [
      'a part without type',
      { ...fine, messages: [{ role: 'user', content: [{ text: 'x' }] }] },
      'with a type each; sent: [{"text":"x"}]',
    ],
    ['a stop that is no text', { ...fine, stop: 5 }, 'stop: Expected a text or a list of texts; sent: 5'],
    ['a temperature of text', { ...fine, temperature: '0.5' }, 'sent: "0.5"'],
    ['half a token', { ...fine, max_tokens: 0.5 }, 'max_tokens'],
    ['half a choice', { ...fine, n: 0.5 }, 'n: '],
  ])('refuses %s', (_name, body, named) => {
    expect(() => readChatRequest(body)).toThrow(ApiError)
    expect(() => readChatRequest(body)).toThrow(named)
    try {
      readChatRequest(body)
    } catch (error) {
      expect(error).toMatchObject({ status: 400, metadata: { error_type: 'invalid_request' } })
    }
  })

  it('lists several faults at once, up to a limit', () => {
    const body = { ...fine, messages: Array.from({ length: 20 }, () => ({ role: 1 })) }
    expect(() => readChatRequest(body)).toThrow(/messages\[4\][^;]*;[^;]*; and more$/)
  })

  it('validates no more of a long list than it reports', () => {
    const looked = new Set<number>()
    const faulty = Array.from({ length: 1000 }, (_, index) => ({
      get role() {
        looked.add(index)
        return 1
      },
    }))
    expect(() => readChatRequest({ ...fine, messages: faulty })).toThrow('and more')
    expect(looked.size).toBe(6)
  })

  it.each(['messages[0].content', 'messages[0].tool_calls', 'models', 'tools', 'stop'])(
    'reports few faults for a list of numbers as %s',
    (place) => {
      const list = Array.from({ length: 1000 }, () => 1)
      expect(chatRequestSchema.safeParse(bodyWith(place, list)).error?.issues.length).toBeLessThan(10)
      expect(() => readChatRequest(bodyWith(place, list))).toThrow(place)
    },
  )

  it.each([
    ['model alone', { ...fine }, ['a/one']],
    ['models alone', { messages, models: ['a/two', 'a/one'] }, ['a/two', 'a/one']],
    ['model first, then models', { ...fine, models: ['a/two'] }, ['a/one', 'a/two']],
    ['each once', { ...fine, models: ['a/two', 'a/one', 'a/two'] }, ['a/one', 'a/two']],
  ])('takes %s', (_name, body, models) => {
    expect(readChatRequest(body).models).toEqual(models)
  })

  it('takes every shape of message of the OpenAI format', () => {
    const all = [
      { role: 'system', content: 'be brief' },
      { role: 'developer', content: [{ type: 'text', text: 'be brief' }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }], name: 'Ada' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f' } }],
      },
      { role: 'assistant' },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: '42' }] },
      { role: 'function', name: 'f', content: null },
      // Shapes that only some providers take.
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ function: { name: 'f' } }, { id: null, type: null }],
      },
      { role: 'latest_reminder', content: 'x' },
      { role: 'ipython', output: 42 },
    ]
    expect(readChatRequest({ ...fine, messages: all }).body['messages']).toEqual(all)
  })

  it('takes nulls for optional fields, and passes on unknown ones', () => {
    const body = {
      ...fine,
      models: null,
      stream: null,
      temperature: null,
      tools: null,
      x_more: { deep: [1] },
    }
    expect(readChatRequest(body)).toMatchObject({ models: ['a/one'], stream: false, body })
  })

  it.each([-1, 0, 1])('takes %i as max_tokens, which means no limit to some servers', (tokens) => {
    const body = { ...fine, max_tokens: tokens, max_completion_tokens: tokens }
    expect(readChatRequest(body).body).toEqual(body)
  })

  it('takes any number for sampling, since providers differ', () => {
    const sampling = { temperature: 3, top_p: 1.5, presence_penalty: 9, frequency_penalty: -9 }
    expect(readChatRequest({ ...fine, ...sampling }).body).toMatchObject(sampling)
  })

  it('takes every seed of the OpenAI format', () => {
    for (const seed of [2 ** 63, -(2 ** 63), 0]) {
      expect(readChatRequest({ ...fine, seed }).body['seed']).toBe(seed)
    }
  })

  it('accepts or rejects any JSON without breaking', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        try {
          readChatRequest(body)
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError)
        }
      }),
    )
  })
})
