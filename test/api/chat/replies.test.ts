/** CONTRACT 6: replies of providers, each behaviour whole and streamed, alone and with a backup. */
import { describeCases, sends, type ProviderCase } from '../../support/chat/provider-case.ts'

const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
type Members = Readonly<Record<string, unknown>>

const whole = (message: unknown, finish: unknown = 'stop', more: Members = {}) => ({
  id: 'chatcmpl-1',
  choices: [{ index: 0, message, finish_reason: finish }],
  usage: USAGE,
  ...more,
})
const part = (delta: unknown, finish: unknown = null, more: Members = {}) => ({
  id: 'chatcmpl-1',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
const counted = { id: 'chatcmpl-1', choices: [], usage: USAGE }
const HELLO = { content: 'Hello' }

const named = (name: unknown, text?: unknown) => ({
  ...(name !== undefined && { name }),
  ...(text !== undefined && { arguments: text }),
})
const call = (inner: unknown, more: Members = {}) => ({
  index: 0,
  id: 'c1',
  type: 'function',
  function: inner,
  ...more,
})
const rest = (inner: unknown, more: Members = {}) => ({ index: 0, function: inner, ...more })

/** A case of tool calls: in a stream, a part per chunk, and in a whole message, by default in OpenAI's form. */
function calls(
  parts: readonly unknown[],
  expected: readonly (readonly [string, string])[] = [READ],
  finish = 'tool_calls',
  sent: readonly unknown[] = expected.map(([name, text], index) =>
    call(named(name, text), { id: `c${index + 1}` }),
  ),
): ProviderCase {
  const outcome = {
    calls: expected,
    finish: 'tool_calls',
    ...(finish !== 'tool_calls' && { native: finish }),
  }
  const chunks = [...parts.map((one) => part({ tool_calls: [one] })), part({}, finish), counted]
  return sends(whole({ content: null, tool_calls: sent }, finish), chunks, outcome)
}

const READ: readonly [string, string] = ['read_file', '{"a":1}']
const AB: readonly (readonly [string, string])[] = [
  ['a', '{"x":1}'],
  ['b', '{"y":2}'],
]
const TWO = [call(named('a', '{"x":1}')), call(named('b', '{"y":2}'), { id: 'c2' })]
const SIGNATURE = { extra_content: { google: { thought_signature: 'signature' } } }

const TOOL_CALLS: Readonly<Record<string, ProviderCase>> = {
  'id and name repeated in every part': calls([
    call(named('read_file', '')),
    call(named('read_file', '{"a"')),
    call(named('read_file', ':1}')),
  ]),
  'name repeated in parts without an id': calls([
    call(named('read_file', '')),
    rest(named('read_file', '{"a"')),
    rest(named('read_file', ':1}')),
  ]),
  'name in fragments': calls([
    call(named('read_', '')),
    rest(named('file', '')),
    rest(named(undefined, '{"a":1}')),
  ]),
  'name that grows': calls([
    call(named('read', '')),
    rest(named('read_file', '')),
    rest(named(undefined, '{"a":1}')),
  ]),
  'an id of its own for every part': calls([
    call(named('read_file', '')),
    rest(named(undefined, '{"a"'), { id: 'c2' }),
    rest(named(undefined, ':1}'), { id: 'c3' }),
  ]),
  'arguments repeated with the finish': calls([
    call(named('read_file', '{"a":1}')),
    call(named('read_file', '{"a":1}')),
  ]),
  'the name after the id': calls([
    call(named(undefined, '')),
    rest(named('read_file')),
    rest(named(undefined, '{"a":1}')),
  ]),
  'the id after the name': calls([rest(named('read_file', '')), call(named(undefined, '{"a":1}'))]),
  'empty arguments before the real ones': calls(
    [call(named('read_file', '{}')), rest(named(undefined, '{"a')), rest(named(undefined, '":1}'))],
    [READ],
    'tool_calls',
    [call(named('read_file', '{}{"a":1}'))],
  ),
  'empty arguments after the real ones': calls([
    call(named('read_file', '{"a":1}')),
    rest(named(undefined, '{}')),
  ]),
  'an empty part amid the arguments': calls([
    call(named('read_file', '{"a"')),
    rest(named(undefined, '')),
    rest({}),
    rest(named(undefined, ':1}')),
  ]),
  'arguments of two calls in one piece': calls(
    [call(named('glob', '{"p":"}{"} {"q":2}'))],
    [
      ['glob', '{"p":"}{"} '],
      ['glob', '{"q":2}'],
    ],
    'tool_calls',
    [call(named('glob', '{"p":"}{"} {"q":2}'))],
  ),
  'calls in turns': calls(
    [
      call(named('a', '{"x"')),
      call(named('b', '{"y"'), { index: 1, id: 'c2' }),
      rest(named(undefined, ':1}')),
      rest(named(undefined, ':2}'), { index: 1 }),
    ],
    AB,
  ),
  'calls without id and index, in one delta': sends(
    whole({
      content: null,
      tool_calls: [{ function: named('a', '{"x":1}') }, { function: named('b', '{"y":2}') }],
    }),
    [
      part({ tool_calls: [{ function: named('a', '{"x":1}') }, { function: named('b', '{"y":2}') }] }),
      part({}, 'tool_calls'),
      counted,
    ],
    { calls: AB, finish: 'tool_calls', native: 'stop' },
    { calls: AB, finish: 'tool_calls' },
  ),
  'calls without id and index, one after another': calls(
    [{ function: named('a', '{"x"') }, { function: named('', ':1}') }, { function: named('b', '{"y":2}') }],
    AB,
  ),
  'a call without arguments before another': calls(
    [call(named('now')), call(named('b', '{"y":2}'), { index: 1, id: 'c2' })],
    [
      ['now', '{}'],
      ['b', '{"y":2}'],
    ],
    'tool_calls',
    [call(named('now')), call(named('b', '{"y":2}'), { id: 'c2' })],
  ),
  'a call with a finish in every part': sends(
    whole({ content: null, tool_calls: [call(named('read_file', '{"a":1}'))] }, 'tool_calls'),
    [
      part({ tool_calls: [call(named('read_file', ''))] }, 'stop'),
      part({ tool_calls: [rest(named(undefined, '{"a":1}'))] }, 'stop'),
      counted,
    ],
    { calls: [READ], finish: 'tool_calls' },
    { calls: [READ], finish: 'tool_calls', native: 'stop' },
  ),
  'null arguments': calls([call(named('now', null))], [['now', '{}']], 'tool_calls', [
    call(named('now', null)),
  ]),
  'empty arguments': calls([call(named('now', ''))], [['now', '{}']], 'tool_calls', [call(named('now', ''))]),
  'missing arguments': calls([call(named('now'))], [['now', '{}']], 'tool_calls', [call(named('now'))]),
  'parsed arguments': calls([call(named('read_file', { a: 1 }))], [READ], 'tool_calls', [
    call(named('read_file', { a: 1 })),
  ]),
  'calls of Gemini, without index, one without id': calls(
    [
      { id: 'function-call-1', function: named('a', '{"x":1}'), ...SIGNATURE },
      { id: '', type: 'function', function: named('b', '{"y":2}') },
    ],
    AB,
    'stop',
    [
      { ...TWO[0], ...SIGNATURE },
      { ...TWO[1], id: '' },
    ],
  ),
  'a signature in a part of its own': calls(
    [{ id: 'c1', type: 'function', function: named('a', '{"x":1}') }, SIGNATURE],
    AB.slice(0, 1),
    'stop',
    [{ ...TWO[0], ...SIGNATURE }],
  ),
  'two calls of one index, without a second name': calls(
    [call(named('glob', '')), rest(named('', '{"p":1}')), rest(named('', '{"q":2}'))],
    [
      ['glob', '{"p":1}'],
      ['glob', '{"q":2}'],
    ],
    'tool_calls',
    [call(named('glob', '{"p":1}')), call(named('glob', '{"q":2}'), { id: '' })],
  ),
  'every call at index 0': calls(TWO, AB),
  'indexes from 1': calls(
    [
      { ...TWO[0], index: 1 },
      { ...TWO[1], index: 2 },
    ],
    AB,
  ),
  'an index of text': calls(
    [call(named('read_file', '{"a"'), { index: '0' }), rest(named(undefined, ':1}'), { index: '0' })],
    [READ],
    'tool_calls',
    [call(named('read_file', '{"a":1}'), { index: '0' })],
  ),
  'a null index': calls(
    TWO.map((one) => ({ ...one, index: null })),
    AB,
  ),
  'one id for every call': calls(
    TWO.map((one, index) => ({ ...one, id: '0', index })),
    AB,
    'tool_calls',
    TWO.map((one) => ({ ...one, id: '0' })),
  ),
  'an id that is a number': calls([call(named('read_file', '{"a":1}'), { id: 7 })], [READ], 'tool_calls', [
    call(named('read_file', '{"a":1}'), { id: 7 }),
  ]),
  'a null type': calls([call(named('read_file', '{"a":1}'), { type: null })], [READ], 'tool_calls', [
    call(named('read_file', '{"a":1}'), { type: null }),
  ]),
  'a function call of the older form': sends(
    whole({ content: null, function_call: named('read_file', '{"a":1}') }, 'function_call'),
    [
      part({ function_call: named('read_file', '') }),
      part({ function_call: named('read_file', '{"a":1}') }),
      part({}, 'function_call'),
      counted,
    ],
    { finish: 'function_call', more: { function_call: { name: 'read_file', arguments: '{"a":1}' } } },
  ),
  'the finish stop beside tool calls': calls(TWO, AB, 'stop'),
  'the finish of Anthropic beside tool calls': calls(TWO, AB, 'tool_use'),
  'a call cut amid its arguments before DONE': sends(
    whole({ content: null, tool_calls: TWO }, null),
    [part({ tool_calls: [call(named('read_file', '{"a":'))] })],
    { calls: AB, finish: 'tool_calls' },
    { status: 502, type: 'provider_unavailable', backup: true },
  ),
}

const finishes = (sent: unknown, finish: string, native?: string) =>
  sends(whole(HELLO, sent), [part(HELLO), ...(sent === null ? [] : [part({}, sent)]), counted], {
    content: 'Hello',
    finish,
    ...(native !== undefined && { native }),
  })

const FINISHES: Readonly<Record<string, ProviderCase>> = {
  'as OpenAI answers': finishes('stop', 'stop'),
  'no finish': finishes(null, 'stop'),
  'the finish of Gemini at its limit': finishes('MAX_TOKENS', 'length', 'MAX_TOKENS'),
  'the finish of Anthropic': finishes('end_turn', 'stop', 'end_turn'),
  'a finish named as Gemini does': sends(
    { ...whole(HELLO), choices: [{ index: 0, message: HELLO, finishReason: 'MAX_TOKENS' }] },
    [part(HELLO), { choices: [{ index: 0, delta: {}, finishReason: 'MAX_TOKENS' }] }, counted],
    { content: 'Hello', finish: 'length', native: 'MAX_TOKENS' },
  ),
  'a filter amid the content': finishes('SAFETY', 'content_filter', 'SAFETY'),
  'a finish with a hyphen': finishes('content-filter', 'content_filter', 'content-filter'),
  'a finish that nobody knows': finishes('MALFORMED_FUNCTION_CALL', 'stop', 'MALFORMED_FUNCTION_CALL'),
  'a text null while the choice goes on': sends(
    whole(HELLO, 'null'),
    [part({ content: 'Hel' }, 'null'), part({ content: 'lo' }, 'null'), part({}, 'stop'), counted],
    { content: 'Hello' },
  ),
  'no content at all': sends(
    whole({ content: '' }, 'stop', { usage: { prompt_tokens: 11, completion_tokens: 0 } }),
    [
      part({ role: 'assistant', content: '' }),
      part({}, 'stop'),
      { ...counted, usage: { prompt_tokens: 11, completion_tokens: 0 } },
    ],
    { content: '', tokens: [11, 0] },
  ),
}

const THOUGHT = { reasoning: 'hm', reasoning_content: 'hm' }
const DETAILS = [{ type: 'reasoning.text', text: 'hm', signature: null, format: null, index: 0 }]
const thinks = (thought: Members, more: Members = THOUGHT) =>
  sends(
    whole({ ...HELLO, ...thought }),
    [part({ content: null, ...thought }), part(HELLO), part({}, 'stop'), counted],
    {
      content: 'Hello',
      more,
    },
  )

const PARTS = [
  { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
  { type: 'text', text: 'Hello' },
]

const REASONING: Readonly<Record<string, ProviderCase>> = {
  'reasoning and content in parts of Mistral': sends(
    whole({ content: PARTS }),
    [part({ content: PARTS.slice(0, 1) }), part({ content: PARTS.slice(1) }), part({}, 'stop'), counted],
    { content: 'Hello', more: THOUGHT },
  ),
  'reasoning as reasoning_content': thinks({ reasoning_content: 'hm' }),
  'reasoning with details': thinks(
    { reasoning: 'hm', reasoning_details: DETAILS },
    { ...THOUGHT, reasoning_details: DETAILS },
  ),
}

/** A case of usage: these members in the last chunk, and in the whole reply. */
const counts = (more: Members, tokens: readonly [number, number] | null = [11, 7]) =>
  sends(
    whole(HELLO, 'stop', { usage: undefined, ...more }),
    [part(HELLO), part({}, 'stop'), { ...counted, usage: undefined, ...more }],
    { content: 'Hello', tokens },
  )
const inStream = (chunks: readonly unknown[]) => sends(whole(HELLO), chunks, { content: 'Hello' })

const USAGES: Readonly<Record<string, ProviderCase>> = {
  'usage in a choice': sends(
    whole(HELLO, 'stop', {
      usage: undefined,
      choices: [{ message: HELLO, finish_reason: 'stop', usage: USAGE }],
    }),
    [part(HELLO), { choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: USAGE }] }],
    { content: 'Hello' },
  ),
  'usage of Groq': counts({ x_groq: { id: 'r', usage: USAGE } }),
  'usage of Gemini': counts({
    usageMetadata: {
      promptTokenCount: 11,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 3,
      totalTokenCount: 18,
    },
  }),
  'usage of Anthropic, with its cache apart': counts({
    usage: { input_tokens: 3, cache_read_input_tokens: 6, cache_creation_input_tokens: 2, output_tokens: 7 },
  }),
  'usage of xAI, with what was thought in the total alone': counts({
    usage: {
      prompt_tokens: 11,
      completion_tokens: 4,
      total_tokens: 18,
      completion_tokens_details: { reasoning_tokens: 3 },
    },
  }),
  'times of llama.cpp instead of usage': counts({ timings: { prompt_n: 6, cache_n: 5, predicted_n: 7 } }),
  'usage in a list': counts({ usage: [USAGE] }),
  'usage with a cache and reasoning': counts({
    usage: {
      ...USAGE,
      prompt_tokens_details: { cached_tokens: 5, audio_tokens: null },
      completion_tokens_details: { reasoning_tokens: 3 },
      cost: 0.01,
    },
  }),
  'usage without the completion': counts({ usage: { prompt_tokens: 11, total_tokens: 71 } }, [11, 60]),
  'usage with a null completion': counts({
    usage: { prompt_tokens: 11, completion_tokens: null, total_tokens: 18 },
  }),
  'usage in fractions': counts({ usage: { prompt_tokens: 11, completion_tokens: 7.4, total_tokens: 18.4 } }),
  'usage as text': counts({ usage: { prompt_tokens: '11', completion_tokens: '7' } }),
  'no usage': counts({}, null),
  'usage with a negative count': counts({ usage: { prompt_tokens: -1, completion_tokens: 3 } }, null),
  'usage in words': counts({ usage: { prompt_tokens: 'seven', completion_tokens: '3' } }, null),
  'usage with one of two counts': counts({ usage: { prompt_tokens: 7 } }, null),
  'usage beyond exact numbers': counts({ usage: { prompt_tokens: 2 ** 53, completion_tokens: 3 } }, null),
  'null usage in every chunk': inStream([
    part({ content: 'Hel' }, null, { usage: null }),
    part({ content: 'lo' }, null, { usage: null }),
    part({}, 'stop', { usage: null }),
    counted,
  ]),
  'usage that grows with every chunk': inStream([
    part({ content: 'Hel' }, null, { usage: { prompt_tokens: 11, completion_tokens: 1 } }),
    part({ content: 'lo' }, 'stop', { usage: USAGE }),
  ]),
  'a late zero': inStream([
    part(HELLO, null, { usage: USAGE }),
    part({}, 'stop', { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }),
  ]),
}

const LOGPROBS = {
  content: [{ token: 'Hello', logprob: -0.1, bytes: null, top_logprobs: [] }],
  refusal: null,
}
const IMAGES = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }]
const CITATION = [{ type: 'url_citation', url_citation: { url: 'http://a.example' } }]
const BESIDE = { stop_reason: 'x', matched_stop: 3, content_filter_results: { hate: {} } }

const MORE: Readonly<Record<string, ProviderCase>> = {
  'a fraction for its time': sends(
    whole(HELLO, 'stop', { created: 1.5 }),
    [part(HELLO, null, { created: 1.5, system_fingerprint: null }), part({}, 'stop'), counted],
    { content: 'Hello' },
  ),
  'two choices': sends(
    {
      ...whole(HELLO),
      choices: [
        { index: 0, message: HELLO, finish_reason: 'stop' },
        { index: 1, message: { content: 'Other' }, finish_reason: 'length' },
      ],
    },
    [
      part(HELLO),
      { choices: [{ index: 1, delta: { content: 'Other' }, finish_reason: null }] },
      part({}, 'stop'),
      { choices: [{ index: 1, delta: {}, finish_reason: 'length' }] },
      counted,
    ],
    { content: 'Hello' },
  ),
  logprobs: sends(
    { ...whole(HELLO), choices: [{ index: 0, message: HELLO, finish_reason: 'stop', logprobs: LOGPROBS }] },
    [
      { choices: [{ index: 0, delta: HELLO, finish_reason: null, logprobs: LOGPROBS }] },
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop', logprobs: null }] },
      counted,
    ],
    { content: 'Hello', more: { logprobs: LOGPROBS } },
  ),
  'an image': sends(
    whole({ ...HELLO, images: IMAGES }),
    [part(HELLO), part({ content: '', images: IMAGES }), part({}, 'stop'), counted],
    { content: 'Hello', more: { images: IMAGES } },
  ),
  citations: sends(
    whole(HELLO, 'stop', { citations: ['http://a.example'] }),
    [part(HELLO, null, { citations: ['http://a.example'] }), part({}, 'stop'), counted],
    { content: 'Hello', more: { citations: ['http://a.example'] } },
  ),
  'annotations with the finish': sends(
    whole({ ...HELLO, annotations: CITATION }),
    [part(HELLO), part({ annotations: CITATION }, 'stop'), counted],
    { content: 'Hello', more: { annotations: CITATION } },
  ),
  'members beside finish and usage': sends(
    {
      ...whole(HELLO, 'stop', { service_tier: 'flex' }),
      choices: [{ index: 0, message: HELLO, finish_reason: 'stop', ...BESIDE }],
    },
    [
      part(HELLO),
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop', ...BESIDE }] },
      { ...counted, service_tier: 'flex' },
    ],
    { content: 'Hello', more: { ...BESIDE, service_tier: 'flex' } },
  ),
  'half of a surrogate pair in each chunk': sends(
    whole({ content: 'a\uD83D\uDE00b' }),
    [part({ content: 'a\uD83D' }), part({ content: '\uDE00b' }), part({}, 'stop'), counted],
    { content: 'a\uD83D\uDE00b' },
  ),
  'three megabytes at once': sends(
    whole({ content: 'x'.repeat(3e6) }),
    [part({ content: 'x'.repeat(3e6) }), part({}, 'stop'), counted],
    { content: 'x'.repeat(3e6) },
  ),
  'content in parts': sends(
    whole({
      content: [
        { type: 'text', text: 'Hel' },
        { type: 'output_text', text: 'lo' },
      ],
    }),
    [part({ content: [{ type: 'text', text: 'Hel' }, 'lo'] }), part({}, 'stop'), counted],
    { content: 'Hello' },
  ),
  'an index of text for the choice': sends(
    { ...whole(HELLO), choices: [{ index: '0', message: HELLO, finish_reason: 'stop' }] },
    [
      { choices: [{ index: '0', delta: HELLO, finish_reason: null }] },
      { choices: [{ index: '0', delta: {}, finish_reason: 'stop' }] },
      counted,
    ],
    { content: 'Hello' },
  ),
}

describeCases('is served with %s', { ...TOOL_CALLS, ...FINISHES, ...REASONING, ...USAGES, ...MORE })
