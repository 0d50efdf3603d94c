/** What strict clients need beside content and tool calls: finishes, reasoning, usage, and further members. */
import { describe, expect, it } from 'vitest'
import { readStream, readWhole } from '../../../support/chat/chat-readers.ts'
import { chunk, completion } from '../../../support/chat/upstream.ts'

const CALL = { index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }

describe('how a choice ended', () => {
  it.each([
    ['stop', 'stop', undefined],
    ['STOP', 'stop', 'STOP'],
    ['end_turn', 'stop', 'end_turn'],
    ['stop_sequence', 'stop', 'stop_sequence'],
    ['a word that nobody knows', 'stop', 'a word that nobody knows'],
    ['MAX_TOKENS', 'length', 'MAX_TOKENS'],
    ['model_length', 'length', 'model_length'],
    ['SAFETY', 'content_filter', 'SAFETY'],
    ['tool_calls', 'stop', 'tool_calls'],
  ])('%s is passed on as %s', (native, reason, ownWord) => {
    const expected = {
      finish_reason: reason,
      ...(ownWord !== undefined && { native_finish_reason: ownWord }),
    }
    const whole = readWhole(
      completion('x', { choices: [{ message: { content: 'x' }, finish_reason: native }] }),
    )
    expect(whole.choice).toEqual({ index: 0, ...expected })
    expect(readStream([chunk({ content: 'x' }), chunk({}, native)]).choice).toEqual({ index: 0, ...expected })
  })

  it.each([
    ['stop', 'tool_calls', 'stop'],
    ['tool_use', 'tool_calls', 'tool_use'],
    ['tool_calls', 'tool_calls', undefined],
    ['length', 'length', undefined],
    [null, 'tool_calls', undefined],
  ])('with tool calls, %s is passed on as %s', (native, reason, ownWord) => {
    const message = { content: null, tool_calls: [CALL] }
    const whole = readWhole(completion(null, { choices: [{ message, finish_reason: native }] })).choice
    const streamed = readStream([chunk({ tool_calls: [CALL] }), chunk({}, native)]).choice
    for (const choice of [whole, streamed]) {
      expect(choice).toMatchObject({ finish_reason: reason })
      expect(choice['native_finish_reason']).toBe(ownWord)
    }
  })

  it('keeps the word that the provider itself sends as native', () => {
    const more = { finish_reason: 'stop', native_finish_reason: 'STOP', matched_stop: 3 }
    const choices = [{ index: 0, delta: {}, ...more }]
    expect(readStream([chunk({ content: 'x' }), { ...chunk({}), choices }]).choice).toEqual({
      index: 0,
      ...more,
    })
  })
})

it('an error beside the end of a broken choice is read with it, whole and streamed', () => {
  const [finish, more] = ['insufficient_system_resource', { error: { message: 'x' } }]
  const overloaded = expect.objectContaining({ kind: 'overloaded' })
  const choices = [{ message: { content: '' }, finish_reason: finish }]
  expect(() => readWhole(completion('', { choices, ...more }))).toThrow(overloaded)
  expect(() => readStream([chunk({}, finish, more)])).toThrow(overloaded)
})

describe('members beside finish and usage', () => {
  it('are kept in a stream as in a whole reply', () => {
    const filters = { content_filter_results: { hate: { filtered: false } } }
    const { choice, top } = readStream([
      chunk({ content: 'x' }),
      {
        ...chunk({}),
        choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...filters }],
        service_tier: 'flex',
      },
      {
        ...chunk({}),
        choices: [],
        usage: { prompt_tokens: 7, completion_tokens: 3 },
        citations: ['http://a'],
      },
    ])
    expect(choice).toEqual({ index: 0, finish_reason: 'stop', ...filters })
    expect(top).toMatchObject({ service_tier: 'flex', citations: ['http://a'], usage: { total_tokens: 10 } })
    expect(top).toMatchObject({ id: 'chatcmpl-1', model: 'a/one', object: 'chat.completion.chunk' })
    const whole = { ...completion(), service_tier: 'flex', citations: ['http://a'] }
    expect(readWhole(whole).top).toMatchObject({ service_tier: 'flex', citations: ['http://a'] })
  })
})

describe('reasoning', () => {
  const BOTH = { reasoning: 'hm', reasoning_content: 'hm' }
  const details = [{ type: 'reasoning.text', text: 'hm', signature: null, index: 0 }]
  it.each([
    ['reasoning', { reasoning: 'hm' }, BOTH],
    ['reasoning_content', { reasoning_content: 'hm' }, BOTH],
    ['details', { reasoning_details: details }, { ...BOTH, reasoning_details: details }],
    ['reasoning_content beside an empty text', { reasoning: '', reasoning_content: 'hm' }, BOTH],
    ['reasoning beside an empty text', { reasoning: 'hm', reasoning_content: '' }, BOTH],
    ['both and details', { ...BOTH, reasoning_details: details }, { ...BOTH, reasoning_details: details }],
    [
      'details beside an empty text',
      { reasoning: '', reasoning_details: details },
      { ...BOTH, reasoning_details: details },
    ],
    ['parts of the content', { content: [{ type: 'thinking', thinking: 'hm' }] }, { ...BOTH, content: '' }],
  ])('sent as %s reaches clients under both names', (_name, sent, expected) => {
    expect(readStream([chunk(sent), chunk({ content: 'x' }), chunk({}, 'stop')]).deltas[0]).toEqual({
      role: 'assistant',
      ...expected,
    })
    const { message } = readWhole(completion('x', { choices: [{ message: { content: 'x', ...sent } }] }))
    expect(message).toMatchObject(expected)
  })

  it('that is empty is not a token', () => {
    expect(readStream([chunk({ reasoning: '' })]).isWhole).toBe(false)
  })
})

const NO_DETAILS = { reasoningTokens: null, cachedTokens: null }
const SEVEN_AND_THREE = { promptTokens: 7, completionTokens: 3, ...NO_DETAILS }
const plain = { prompt_tokens: 7, completion_tokens: 3 }

describe('usage', () => {
  it.each([
    ['in its place', { usage: plain }, SEVEN_AND_THREE],
    ['in a list', { usage: [plain] }, SEVEN_AND_THREE],
    ['of Groq', { usage: undefined, x_groq: { id: 'x', usage: plain } }, SEVEN_AND_THREE],
    ['as text', { usage: { prompt_tokens: '7', completion_tokens: '3.0' } }, SEVEN_AND_THREE],
    ['as fractions', { usage: { prompt_tokens: 6.9, completion_tokens: 3.2 } }, SEVEN_AND_THREE],
    ['with prompt and total alone', { usage: { prompt_tokens: 7, total_tokens: 10 } }, SEVEN_AND_THREE],
    [
      'with a null',
      { usage: { prompt_tokens: 7, completion_tokens: null, total_tokens: 10 } },
      SEVEN_AND_THREE,
    ],
    [
      'with completion and total alone',
      { usage: { completion_tokens: 3, total_tokens: 10 } },
      SEVEN_AND_THREE,
    ],
    ['called input and output', { usage: { input_tokens: 7, output_tokens: 3 } }, SEVEN_AND_THREE],
    [
      'with what was thought in the total alone',
      { usage: { ...plain, total_tokens: 15, completion_tokens_details: { reasoning_tokens: 5 } } },
      { promptTokens: 7, completionTokens: 8, reasoningTokens: 5, cachedTokens: null },
    ],
    [
      'with what was thought in the completion',
      { usage: { ...plain, total_tokens: 10, completion_tokens_details: { reasoning_tokens: 2 } } },
      { ...SEVEN_AND_THREE, reasoningTokens: 2 },
    ],
    [
      'with a total that nothing explains',
      { usage: { ...plain, total_tokens: 15, completion_tokens_details: { reasoning_tokens: 4 } } },
      { ...SEVEN_AND_THREE, reasoningTokens: 4 },
    ],
    [
      'with a cache',
      { usage: { ...plain, prompt_tokens_details: { cached_tokens: 5 } } },
      { ...SEVEN_AND_THREE, cachedTokens: 5 },
    ],
    [
      'with a cache of DeepSeek',
      { usage: { ...plain, prompt_cache_hit_tokens: 5 } },
      { ...SEVEN_AND_THREE, cachedTokens: 5 },
    ],
    ['without the completion', { usage: { prompt_tokens: 7 } }, undefined],
    ['with a total below its part', { usage: { prompt_tokens: 7, total_tokens: 3 } }, undefined],
    [
      'of no tokens',
      { usage: { prompt_tokens: 0, completion_tokens: 0 } },
      { promptTokens: 0, completionTokens: 0, ...NO_DETAILS },
    ],
  ])('%s is read, whole and streamed', (_name, more, usage) => {
    const expected = usage === undefined ? undefined : { ...usage, reported: expect.anything() }
    expect(readWhole({ ...completion(), ...more }).usage).toEqual(expected)
    expect(readStream([chunk({ content: 'x' }), { ...chunk({}, 'stop'), ...more }]).usage).toEqual(expected)
    expect(
      readStream([chunk({ content: 'x' }), chunk({}, 'stop'), { ...chunk({}), choices: [], ...more }]).usage,
    ).toEqual(expected)
  })

  it('in a choice is read, and does not stay there', () => {
    const choices = [{ index: 0, delta: {}, finish_reason: 'stop', usage: plain }]
    const { usage, choice } = readStream([chunk({ content: 'x' }), { ...chunk({}), choices }])
    expect(usage).toMatchObject(SEVEN_AND_THREE)
    expect(choice).toEqual({ index: 0, finish_reason: 'stop' })
  })

  it.each([
    ['a late zero', [plain, { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }]],
    ['a late null', [plain, { prompt_tokens: null, completion_tokens: null }]],
    ['a part that comes alone', [{ prompt_tokens: 7, completion_tokens: 0 }, { completion_tokens: 3 }]],
    [
      'a count that grows',
      [
        { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 },
        { ...plain, total_tokens: 10 },
      ],
    ],
  ])('of a stream is not spoilt by %s', (_name, usages) => {
    const chunks = usages.map((usage) => ({ ...chunk({ content: 'x' }), usage }))
    expect(readStream([...chunks, chunk({}, 'stop')]).usage).toMatchObject(SEVEN_AND_THREE)
  })
})
