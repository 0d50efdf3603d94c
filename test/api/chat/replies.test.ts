/** CONTRACT 6: replies of providers, each behaviour whole and streamed, alone and with a backup. */
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import {
  describeCases,
  does,
  goesOn,
  ofStream,
  rowsOf,
  sends,
  UNHURRIED,
  type Cases,
  type Outcome,
} from '../../support/chat/provider-case.ts'
import {
  answers,
  chunk,
  chunksOf,
  completion,
  counted,
  either,
  endsWith,
  events,
  inTurn,
  sse,
  stream,
  USAGE,
  writes,
  type Behaviour,
} from '../../support/chat/upstream.ts'

type Members = Readonly<Record<string, unknown>>

const STOP = [chunk({}, 'stop'), counted()]
const HELLO = { content: 'Hello' }

type WholeReply = Members & { readonly choices: readonly (Members & { readonly message: unknown })[] }
/** A case of a whole reply, and of a stream that says the same: each message in one part, then the ends of choices. */
function alike({ choices, usage, ...beside }: WholeReply, outcome: Outcome = HELLO) {
  const parts = choices.map(({ index = 0, message }) => ({
    ...beside,
    choices: [{ index, delta: message, finish_reason: null }],
  }))
  const last = choices.map(({ message: _message, ...choice }) => ({
    choices: [{ index: 0, ...choice, delta: {} }],
  }))
  return sends(
    { ...beside, choices, usage },
    [...parts, ...last, { ...counted(), ...beside, usage }],
    outcome,
  )
}
/** A case of a stream of these chunks. */
const inStream = (chunks: readonly unknown[], outcome: Outcome = HELLO) =>
  ofStream(endsWith(...chunks), outcome)

/**
 * Name; parts of the stream; calls that clients read; finish; and the calls of a whole message, if those differ (`=`: the
 * parts of the stream). A part is `index id name arguments`: `-` is absent, and '' an empty text. `;` parts chunks, `+`
 * parts within one chunk.
 */
const TOOL_CALLS = `
id and name repeated in every part | 0 c1 read_file '' ; 0 c1 read_file {"a" ; 0 c1 read_file :1} | read_file {"a":1} | tool_calls
name repeated in parts without an id | 0 c1 read_file '' ; 0 - read_file {"a" ; 0 - read_file :1} | read_file {"a":1} | tool_calls
name in fragments | 0 c1 read_ '' ; 0 - file '' ; 0 - - {"a":1} | read_file {"a":1} | tool_calls
name that grows | 0 c1 read '' ; 0 - read_file '' ; 0 - - {"a":1} | read_file {"a":1} | tool_calls
an id of its own for every part | 0 c1 read_file '' ; 0 c2 - {"a" ; 0 c3 - :1} | read_file {"a":1} | tool_calls
an id of its own for every part, beside the name | 0 c1 read_file {"a" ; 0 c2 read_file :1} | read_file {"a":1} | tool_calls
arguments repeated with the finish | 0 c1 read_file {"a":1} ; 0 c1 read_file {"a":1} | read_file {"a":1} | tool_calls
the name after the id | 0 c1 - '' ; 0 - read_file - ; 0 - - {"a":1} | read_file {"a":1} | tool_calls
the id after the name | 0 - read_file '' ; 0 c1 - {"a":1} | read_file {"a":1} | tool_calls
arguments that grow in every part | 0 c1 read_file { ; 0 c1 read_file {"a" ; 0 - - {"a": ; 0 - - {"a":1} ; 0 c1 read_file {"a":1} | read_file {"a":1} | tool_calls
an object that begins like the one around it | 0 c1 read_file {"a": ; 0 - - {"a":1}} | read_file {"a":{"a":1}} | tool_calls
empty arguments before the real ones | 0 c1 read_file {} ; 0 - - {"a ; 0 - - ":1} | read_file {"a":1} | tool_calls | 0 c1 read_file {}{"a":1}
empty arguments after the real ones | 0 c1 read_file {"a":1} ; 0 - - {} | read_file {"a":1} | tool_calls
an empty part amid the arguments | 0 c1 read_file {"a" ; 0 - - '' ; 0 - - - ; 0 - - :1} | read_file {"a":1} | tool_calls
arguments of two calls in one piece | 0 c1 glob {"p":"}{"} {"q":2} | glob {"p":"}{"} ; glob {"q":2} | tool_calls | =
calls in turns | 0 c1 a {"x" ; 1 c2 b {"y" ; 0 - - :1} ; 1 - - :2} | a {"x":1} ; b {"y":2} | tool_calls
calls without id and index, in one delta | - - a {"x":1} + - - b {"y":2} | a {"x":1} ; b {"y":2} | tool_calls | =
calls without id and index, one after another | - - a {"x" ; - - '' :1} ; - - b {"y":2} | a {"x":1} ; b {"y":2} | tool_calls
a call without arguments before another | 0 c1 now - ; 1 c2 b {"y":2} | now {} ; b {"y":2} | tool_calls | =
null arguments | 0 c1 now null | now {} | tool_calls | =
empty arguments | 0 c1 now '' | now {} | tool_calls | =
missing arguments | 0 c1 now - | now {} | tool_calls | =
null as text for arguments | 0 c1 now null_text | now {} | tool_calls | =
two calls of one index, without a second name | 0 c1 glob '' ; 0 - '' {"p":1} ; 0 - '' {"q":2} | glob {"p":1} ; glob {"q":2} | tool_calls
the rest of the second call at an index of its own | 0 c1 a '' ; 0 - - {"x":1} ; 0 c2 b '' ; 1 - - {"y" ; 1 - '' :2} | a {"x":1} ; b {"y":2} | tool_calls
every call at index 0 | 0 c1 a {"x":1} ; 0 c2 b {"y":2} | a {"x":1} ; b {"y":2} | tool_calls
indexes from 1 | 1 c1 a {"x":1} ; 2 c2 b {"y":2} | a {"x":1} ; b {"y":2} | tool_calls
an index of text | "0" c1 read_file {"a" ; "0" - - :1} | read_file {"a":1} | tool_calls | "0" c1 read_file {"a":1}
a null index | null c1 a {"x":1} ; null c2 b {"y":2} | a {"x":1} ; b {"y":2} | tool_calls
one id for every call | 0 c1 a {"x":1} ; 1 c1 b {"y":2} | a {"x":1} ; b {"y":2} | tool_calls | =
a call again at a further index, with its arguments | 0 c1 a '' ; 1 c1 a {"x":1} ; 2 c1 a {"x":1} | a {"x":1} | tool_calls
calls of one index without ids and arguments | 0 - a {} ; 0 - b {} | a {} ; b {} | tool_calls | =
the finish stop beside tool calls | 0 c1 a {"x":1} ; 0 c2 b {"y":2} | a {"x":1} ; b {"y":2} | stop
the finish of Anthropic beside tool calls | 0 c1 a {"x":1} ; 0 c2 b {"y":2} | a {"x":1} ; b {"y":2} | tool_use
`

const VALUES: Members = { "''": '', null: null, null_text: 'null' }
/** A part of the table; JSON leaves out what is undefined. */
function callPart(text: string): unknown {
  const [, index = '', id = '', name = '', sent = ''] = /^(\S+) (\S+) (\S+) (.*)$/.exec(text) ?? []
  const value = (token: string) => (token in VALUES ? VALUES[token] : token)
  const present = (token: string) => (token === '-' ? undefined : value(token))
  return {
    index: index === '-' ? undefined : JSON.parse(index),
    id: present(id),
    type: id === '-' ? undefined : 'function',
    function: { name: present(name), arguments: present(sent) },
  }
}

/** The chunks of a stream of calls, and the end of their choice. */
const callChunks = (deltas: readonly unknown[], finish: unknown) => [
  ...deltas.map((calls) => chunk({ tool_calls: calls })),
  chunk({}, finish),
  counted(),
]

function toolCallCase([name = '', parts = '', expected = '', finish = '', sent]: readonly string[]) {
  const deltas = parts.split(' ; ').map((delta) => delta.split(' + ').map(callPart))
  const calls = expected.split(' ; ').map((one): readonly [string, string] => {
    const space = one.indexOf(' ')
    return [one.slice(0, space), one.slice(space + 1)]
  })
  const plain = calls.map(([called, text], index) => callPart(`${index} c${index + 1} ${called} ${text}`))
  const message = sent === undefined ? plain : sent === '=' ? deltas.flat() : [callPart(sent)]
  const outcome = { calls, finish: 'tool_calls', ...(finish !== 'tool_calls' && { native: finish }) }
  const reply = completion({ content: null, tool_calls: message }, finish)
  return [name, sends(reply, callChunks(deltas, finish), outcome)] as const
}

const call = (more: Members = {}, inner: Members = {}) => ({
  index: 0,
  id: 'c1',
  type: 'function',
  function: { name: 'read_file', arguments: '{"a":1}', ...inner },
  ...more,
})
const READ: readonly [string, string] = ['read_file', '{"a":1}']
const STOPPED = { calls: [READ], finish: 'tool_calls', native: 'stop' }
const SIGNATURE = { extra_content: { google: { thought_signature: 'signature' } } }

/** A case of such a call, in one piece. */
const odd = (one: unknown) =>
  alike(completion({ content: null, tool_calls: [one] }, 'tool_calls'), {
    calls: [READ],
    finish: 'tool_calls',
  })

const ODD_CALLS: Cases = {
  'parsed arguments': odd(call({}, { arguments: { a: 1 } })),
  'name and arguments without a function around them': odd({ name: 'read_file', arguments: { a: 1 } }),
  'a call instead of a list of calls, as older versions of TGI stream': inStream(
    callChunks(
      [call({ id: '' }, { arguments: '{"a"' }), call({ id: '' }, { name: null, arguments: ':1}' })],
      'stop',
    ),
    STOPPED,
  ),
  'an object for no calls, as gateways in Lua pack an empty list': alike(
    completion({ ...HELLO, tool_calls: {} }),
  ),
  'an id that is a number': odd(call({ id: 7 })),
  'a null type': odd(call({ type: null })),
  'calls of Gemini, without index, one without id': sends(
    completion({ content: null, tool_calls: [call(SIGNATURE), call({ id: '' }, { name: 'b' })] }, 'stop'),
    callChunks(
      [[call({ ...SIGNATURE, index: undefined })], [call({ index: undefined, id: '' }, { name: 'b' })]],
      'stop',
    ),
    { ...STOPPED, calls: [READ, ['b', '{"a":1}']] },
  ),
  'a signature in a part of its own': inStream(
    callChunks([[call({ index: undefined })], [SIGNATURE]], 'stop'),
    STOPPED,
  ),
  'a call with a finish in every part': inStream(
    [
      chunk({ tool_calls: [call({}, { arguments: '' })] }, 'stop'),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] }, 'stop'),
      counted(),
    ],
    STOPPED,
  ),
  'a function call of the older form': sends(
    completion({ content: null, function_call: call().function }, 'function_call'),
    [
      chunk({ function_call: { name: 'read_file', arguments: '' } }),
      chunk({ function_call: call().function }),
      chunk({}, 'function_call'),
      counted(),
    ],
    { finish: 'function_call', more: { function_call: call().function } },
  ),
  'a call cut amid its arguments before [DONE]': sends(
    completion({ content: null, tool_calls: [call()] }, null),
    [chunk({ tool_calls: [call({}, { arguments: '{"a":' })] })],
    { calls: [READ], finish: 'tool_calls' },
    { status: 502, type: 'provider_unavailable' },
  ),
}

/** Name, the provider's finish, and ours. */
const FINISHES = `
as OpenAI answers | "stop" | stop
no finish | null | stop
the finish of Gemini at its limit | "MAX_TOKENS" | length
the finish of Anthropic | "end_turn" | stop
a filter amid the content | "SAFETY" | content_filter
a filter with its reason | "content_filter: PROHIBITED_CONTENT" | content_filter
a filter of images | "IMAGE_PROHIBITED_CONTENT" | content_filter
a finish with a hyphen | "content-filter" | content_filter
a finish that nobody knows | "MALFORMED_FUNCTION_CALL" | stop
`

function finishCase([name = '', sent = '', finish = '']: readonly string[]) {
  const native: unknown = JSON.parse(sent)
  const outcome = { ...HELLO, finish, ...(typeof native === 'string' && native !== finish && { native }) }
  return [name, alike(completion(HELLO, native), outcome)] as const
}

const NO_ANSWER = { prompt_tokens: 11, completion_tokens: 0 }

const ODD_FINISHES: Cases = {
  'a finish named as Gemini does': alike(
    completion(HELLO, 'stop', { choices: [{ index: 0, finishReason: 'MAX_TOKENS', message: HELLO }] }),
    { ...HELLO, finish: 'length', native: 'MAX_TOKENS' },
  ),
  'a text null while the choice goes on': sends(
    completion(HELLO, 'null'),
    [chunk({ content: 'Hel' }, 'null'), chunk({ content: 'lo' }, 'null'), ...STOP],
    HELLO,
  ),
  'no content at all': alike(completion({ content: '' }, 'stop', { usage: NO_ANSWER }), {
    content: '',
    tokens: [11, 0],
  }),
}

/** Name, tokens in the record (prompt, completion, cached, reasoning), and the members of the whole reply and of the last chunk that hold the usage. */
const USAGES = `
usage of Groq | 11 7 | {"x_groq":{"id":"r","usage":{"prompt_tokens":11,"completion_tokens":7}}}
usage of Gemini | 11 7 - 3 | {"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":4,"thoughtsTokenCount":3,"totalTokenCount":18}}
usage of Anthropic, with its cache apart | 11 7 6 | {"usage":{"input_tokens":3,"cache_read_input_tokens":6,"cache_creation_input_tokens":2,"output_tokens":7}}
usage of xAI, with what was thought in the total alone | 11 7 - 3 | {"usage":{"prompt_tokens":11,"completion_tokens":4,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":3}}}
usage of Gemini in the form of OpenAI, with what was thought in the total alone | 11 7 | {"usage":{"prompt_tokens":11,"completion_tokens":4,"total_tokens":18}}
times of llama.cpp instead of usage | 11 7 5 | {"timings":{"prompt_n":6,"cache_n":5,"predicted_n":7}}
usage in a list | 11 7 | {"usage":[{"prompt_tokens":11,"completion_tokens":7}]}
usage with a cache and reasoning | 11 7 5 3 | {"usage":{"prompt_tokens":11,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":5,"audio_tokens":null},"completion_tokens_details":{"reasoning_tokens":3},"cost":0.01}}
usage of Mistral, with the cached tokens beside it | 11 7 5 | {"usage":{"prompt_tokens":11,"completion_tokens":7,"num_cached_tokens":5}}
usage with the details of OpenAI's other API | 11 7 5 2 | {"usage":{"prompt_tokens":11,"completion_tokens":7,"input_tokens_details":{"cached_tokens":5},"output_tokens_details":{"reasoning_tokens":2}}}
usage without the completion | 11 60 | {"usage":{"prompt_tokens":11,"total_tokens":71}}
usage with a null completion | 11 7 | {"usage":{"prompt_tokens":11,"completion_tokens":null,"total_tokens":18}}
usage in fractions | 11 7 | {"usage":{"prompt_tokens":11,"completion_tokens":7.4,"total_tokens":18.4}}
usage as text | 11 7 | {"usage":{"prompt_tokens":"11","completion_tokens":"7"}}
no usage | none | {}
a null usage | none | {"usage":null}
usage with a negative count | none | {"usage":{"prompt_tokens":-1,"completion_tokens":3}}
usage in words | none | {"usage":{"prompt_tokens":"seven","completion_tokens":"3"}}
usage with one of two counts | none | {"usage":{"prompt_tokens":7}}
usage beyond exact numbers | none | {"usage":{"prompt_tokens":9007199254740992,"completion_tokens":3}}
`

function usageCase([name = '', counts = '', sent = '']: readonly string[]) {
  const members = { usage: undefined, ...JSON.parse(sent) }
  const tokens = counts === 'none' ? null : counts.split(' ').map((one) => (one === '-' ? null : Number(one)))
  return [name, alike(completion(HELLO, 'stop', members), { ...HELLO, tokens })] as const
}

const begun = { usage: { prompt_tokens: 11, completion_tokens: 1 } }
const zero = { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }

const USAGE_IN_STREAMS: Cases = {
  'usage in a choice': alike(
    completion(HELLO, 'stop', {
      usage: undefined,
      choices: [{ message: HELLO, finish_reason: 'stop', usage: USAGE }],
    }),
  ),
  'null usage in every chunk': inStream([
    chunk(HELLO, null, { usage: null }),
    chunk({}, 'stop', { usage: null }),
    counted(),
  ]),
  'usage that grows with every chunk': inStream([
    chunk({ content: 'Hel' }, null, begun),
    chunk({ content: 'lo' }, 'stop', { usage: USAGE }),
  ]),
  'a late zero': inStream([chunk(HELLO, null, { usage: USAGE }), chunk({}, 'stop', zero)]),
}

const THOUGHT = { reasoning: 'hm', reasoning_content: 'hm' }
const DETAILS = [{ type: 'reasoning.text', text: 'hm', signature: null, format: null, index: 0 }]
const MISTRALS = [
  { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
  { type: 'text', text: 'Hello' },
]
const REFERRING = [
  { type: 'text', text: 'Hello' },
  { type: 'reference', reference_ids: [1] },
]
const DATABRICKS = [
  { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm', signature: 's' }] },
  { type: 'redacted_thinking', data: 'x' },
  { type: 'text', text: 'Hello' },
]
const LOGPROBS = {
  content: [{ token: 'Hello', logprob: -0.1, bytes: null, top_logprobs: [] }],
  refusal: null,
}
/** As much as an event may hold: image models send a whole image. */
const IMAGES = [
  { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(12 * 2 ** 20)}` } },
]
const NO_ERROR = { message: '', type: '', param: '', code: null }
const besideDelta = (delta: unknown, content: string, finish: unknown = null) => ({
  choices: [{ index: 0, delta, message: { role: 'assistant', content }, finish_reason: finish }],
})
const CITATION = [{ type: 'url_citation', url_citation: { url: 'http://a.example' } }]
const BESIDE = { stop_reason: 'x', matched_stop: 3, content_filter_results: { hate: {} } }

/** A case of these members of a message. */
const keeps = (members: Members, more: Members = members) =>
  alike(completion({ ...HELLO, ...members }), { ...HELLO, more })
/** A case of these members beside the finish. */
const besideFinish = (members: Members, more = members) =>
  alike(completion(HELLO, 'stop', { choices: [{ message: HELLO, finish_reason: 'stop', ...members }] }), {
    ...HELLO,
    more,
  })
/** A case of content in parts, each in a chunk of its own if streamed. */
const inParts = (content: readonly unknown[], more: Members = {}) =>
  sends(completion({ content }), [...content.map((one) => chunk({ content: [one] })), ...STOP], {
    ...HELLO,
    more,
  })

const MEMBERS: Cases = {
  'nothing but content': sends({ choices: [{ message: HELLO }] }, [{ choices: [{ delta: HELLO }] }], {
    ...HELLO,
    tokens: null,
    more: { role: 'assistant' },
  }),
  nulls: alike(
    completion({ role: null, ...HELLO, tool_calls: null, audio: null }, 'stop', { service_tier: null }),
  ),
  'a fraction for its time': alike(completion(HELLO, 'stop', { created: 1.5, system_fingerprint: null })),
  'id and time after a first chunk without them, as Azure does': inStream(
    [{ id: '', created: 0, model: '', choices: [] }, chunk(HELLO, null, { created: 1_760_000_000 }), ...STOP],
    { ...HELLO, more: { id: 'chatcmpl-1', created: 1_760_000_000 } },
  ),
  'two choices': alike(
    completion(HELLO, 'stop', {
      choices: [
        { index: 0, message: HELLO, finish_reason: 'stop' },
        { index: 1, message: { content: 'Other' }, finish_reason: 'length' },
      ],
    }),
    { ...HELLO, second: 'Other' },
  ),
  'an index of text for the choice': besideFinish({ index: '0' }, { index: 0 }),
  'members beside the finish': besideFinish(BESIDE),
  logprobs: sends(
    completion(HELLO, 'stop', { choices: [{ message: HELLO, finish_reason: 'stop', logprobs: LOGPROBS }] }),
    [{ choices: [{ index: 0, delta: HELLO, logprobs: LOGPROBS }] }, chunk({}, 'stop'), counted()],
    { ...HELLO, more: { logprobs: LOGPROBS } },
  ),
  'logprobs and a function call in parts, whatever was asked for': does(
    stream(
      sse([
        {
          choices: [
            { delta: { ...HELLO, function_call: { name: 'f', arguments: '{"a"' } }, logprobs: LOGPROBS },
          ],
        },
        { choices: [{ delta: { function_call: { arguments: ':1}' } }, logprobs: LOGPROBS }] },
        ...STOP,
      ]),
    ),
    {
      ...HELLO,
      more: {
        function_call: { name: 'f', arguments: '{"a":1}' },
        logprobs: { content: [...LOGPROBS.content, ...LOGPROBS.content] },
      },
    },
  ),
  'members beside choices and usage': sends(
    completion(HELLO, 'stop', { service_tier: 'flex', citations: ['http://a.example'] }),
    [
      chunk(HELLO, null, { citations: ['http://a.example'], provider: 'of a router' }),
      chunk({}, 'stop'),
      { ...counted(), service_tier: 'flex' },
    ],
    { ...HELLO, more: { service_tier: 'flex', citations: ['http://a.example'] } },
  ),
  'an error without any word, as Apertis sends with every reply': alike(
    completion(HELLO, 'stop', { error: NO_ERROR }),
  ),
  'all of the message beside each part, as Perplexity does': inStream([
    besideDelta({ content: 'Hel' }, 'Hel'),
    besideDelta({ content: 'lo' }, 'Hello'),
    { ...besideDelta({ content: '' }, 'Hello', 'stop'), usage: USAGE },
  ]),
  'a message instead of a delta in every part': inStream([
    completion({ content: 'Hel' }, null),
    completion({ content: 'lo' }, null),
    ...STOP,
  ]),
  'all of the message with the finish, as MiniMax does': inStream([chunk(HELLO), completion(HELLO)]),
  'an empty part beside the message': sends(
    { ...completion(HELLO), choices: [{ index: 0, delta: { role: '', content: '' }, message: HELLO }] },
    [chunk(HELLO), ...STOP],
    HELLO,
  ),
  'annotations with the finish': sends(
    completion({ ...HELLO, annotations: CITATION }),
    [chunk(HELLO), chunk({ annotations: CITATION }, 'stop'), counted()],
    { ...HELLO, more: { annotations: CITATION } },
  ),
  'a large image': keeps({ images: IMAGES }),
  'reasoning as reasoning_content': keeps({ reasoning_content: 'hm' }, THOUGHT),
  'reasoning with details': keeps(
    { reasoning: 'hm', reasoning_details: DETAILS },
    { ...THOUGHT, reasoning_details: DETAILS },
  ),
  'reasoning before the content': inStream(
    [chunk({ content: null, reasoning: 'hm' }), chunk(HELLO), ...STOP],
    { ...HELLO, more: THOUGHT },
  ),
  'reasoning and content in parts of Mistral': inParts(MISTRALS, THOUGHT),
  'content in parts of Mistral that refer to documents': inParts(REFERRING),
  'reasoning and content in parts of Databricks': inParts(DATABRICKS, THOUGHT),
  'content in parts': inParts([{ type: 'text', text: 'He' }, { type: 'output_text', text: 'l' }, 'lo']),
  'half of a surrogate pair in each chunk': inStream(
    [chunk({ content: 'a\uD83D' }), chunk({ content: '\uDE00b' }), ...STOP],
    { content: 'a\uD83D\uDE00b' },
  ),
}

const GREETING = 'Grüße 🚀 world'
const WHOLE = JSON.stringify(completion({ content: GREETING }))
const CHUNKS = chunksOf(['Grüße ', '🚀', ' world'])
const EVENTS = sse(CHUNKS)
const GREETED = { content: GREETING }

/** The requested reply with these headers and these bytes. */
function packed(headers: Readonly<Record<string, string>>, pack = (text: string): string | Buffer => text) {
  const send = (text: string): Behaviour => {
    return (response) => void response.writeHead(200, headers).end(pack(text))
  }
  return does(either(send(WHOLE), send(EVENTS)), GREETED)
}
const coded = (coding: string, pack: (text: string) => Buffer) =>
  packed({ 'content-encoding': coding, 'content-type': 'text/event-stream' }, pack)
const beginsEach = (text: string) => EVENTS.replaceAll('data: {', `${text}data: {`)

/** Texts of a reply, whatever was asked for. */
const TEXTS = {
  events: EVENTS,
  JSON: WHOLE,
  'a line of JSON each': CHUNKS.map((one) => `${JSON.stringify(one)}\n`).join(''),
  'a list of JSON': JSON.stringify(CHUNKS),
  'events without blank lines': EVENTS.replaceAll('\n\n', '\n'),
  'events without a space': EVENTS.replaceAll('data: ', 'data:'),
  'events of several lines': CHUNKS.map(
    (one) => `${JSON.stringify(one, null, 1).replaceAll(/^/gm, 'data: ')}\n\n`,
  ).join(''),
  'events among comments and other fields': `: waiting\n\nretry: 3000\n\nevent: message\nid: 1\n${EVENTS.replaceAll('data: ', ':\n\n: still here\n\ndata: ')}`,
  'events among empty ones': beginsEach('data:\n\nevent: ping\ndata: \n\n'),
  'events among null': beginsEach('data: null\n\n'),
  'events among comments that are called data, as Vertex sends': beginsEach('data: : keepalive\n\n'),
  // Of sse-starlette, and of an agent that runs tools.
  'events among events of other names': beginsEach(
    'event: ping\ndata: 2026-11-26 12:00:00\n\nevent: status\ndata: {"message":"working"}\n\n',
  ),
  'events whose field is named twice': EVENTS.replaceAll('data: ', 'data: data: '),
  'events with data after [DONE]': `${EVENTS}data: {"choices":[]}\n\n`,
  'events without [DONE]': sse(CHUNKS, false),
  'events without the blank line at its end': EVENTS.trimEnd(),
}

/** A reply of other words after what `begin` sends. */
const after = (begin: Behaviour) => does(inTurn(begin, answers()), HELLO)

const FORMS: Cases = {
  ...Object.fromEntries(
    Object.entries(TEXTS).map(([name, text]) => [
      `a reply in ${name}`,
      does((response) => void response.end(text), GREETED),
    ]),
  ),
  'a reply packed by gzip': coded('gzip', gzipSync),
  'a reply packed by deflate': coded('deflate', deflateSync),
  'a reply packed by br': coded('br', brotliCompressSync),
  'a reply packed by gzip under its older name': coded('x-gzip', gzipSync),
  'a reply packed by zstd': coded('zstd', zstdCompressSync),
  // Next.js and others keep proxies from packing a stream by this name.
  'a reply packed by none': coded('none', (text) => Buffer.from(text)),
  'a reply called JSON, whatever it is': packed({ 'content-type': 'application/json' }),
  'a reply called events, whatever it is': packed({ 'content-type': 'text/event-stream' }),
  'a reply called plain text': packed({ 'content-type': 'text/plain' }),
  'a reply without a type': packed({}),
  'a reply after a byte order mark': packed({}, (text) => `\uFEFF${text}`),
  'a reply in lines that end with CRLF': packed({}, (text) => text.replaceAll('\n', '\r\n')),
  'a reply in lines that end with CR': packed({}, (text) => text.replaceAll('\n', '\r')),
  'a reply in JSON after blank lines': packed({}, (text) => `\n\n  ${text}`),
  'a reply in single bytes': does(either(stream(WHOLE, 1), stream(EVENTS, 1)), GREETED),
  'a reply as large as it may be': {
    ...does((response) => void response.end(WHOLE.padEnd(64 * 2 ** 20)), GREETED),
    streamed: stream(EVENTS),
  },
  'a reply with a 201': does((response) => void response.writeHead(201).end(WHOLE), GREETED),
  'a reply after 100 Continue': after((response) => response.writeContinue()),
  'a reply after early hints': after((response) => response.writeEarlyHints({ link: '</x>; rel=preload' })),
  'a reply of HTTP/1.0': does(
    (response) => void response.socket?.end(`HTTP/1.0 200 OK\r\n\r\n${WHOLE}`),
    GREETED,
  ),
  'an event beyond all measure after [DONE]': ofStream(
    writes(`${EVENTS}data: ${'x'.repeat(17 * 2 ** 20)}`),
    GREETED,
  ),
  'a break after the finish': goesOn(
    (response) => void response.write(sse([chunk({}, 'stop')], false), () => response.destroy()),
    { content: 'Hel', tokens: null },
  ),
  'words that go on after the first was read': goesOn(endsWith(chunk({ content: 'lo' }), ...STOP), HELLO),
}

const OVER = [chunk(HELLO), chunk({}, 'stop')]
const finished = (content: string) => events(chunk({ content }, 'stop', { usage: USAGE }))
const SECOND = { choices: [{ index: 1, delta: { content: 'Other' }, finish_reason: 'length' }] }
/** Signs of life, one every 50 milliseconds, for so long. */
const signs =
  (milliseconds: number, sign = ': still here\n\n'): Behaviour =>
  async (response) => {
    const end = performance.now() + milliseconds
    while (!response.destroyed && performance.now() < end) {
      response.write(sign)
      await sleep(50)
    }
  }
/** Each provider has one short deadline at most; the others are beyond any test. */
const patient = { timeouts: { ...UNHURRIED, first_token_ms: 2000 } }

const PAUSES: Cases = {
  'a stream with every choice over, but open': ofStream(events(...OVER), { ...HELLO, tokens: null }),
  'a stream that stays open after its usage': ofStream(events(...OVER, counted()), HELLO),
  'a stream that goes on with comments after its usage': ofStream(
    inTurn(events(...OVER, counted()), signs(UNHURRIED.total_ms)),
    HELLO,
  ),
  'a stream with its usage seconds after its finish': ofStream(
    inTurn(events(...OVER), 1500, endsWith(counted())),
    HELLO,
  ),
  'a stream with finish and usage in every chunk, however slowly it goes on': ofStream(
    inTurn(finished('one '), 1500, finished('two'), 1500, endsWith(counted())),
    { content: 'one two' },
  ),
  'a stream in which one of the requested choices begins late': {
    ...ofStream(inTurn(events(...OVER, counted()), 1500, endsWith(SECOND)), { ...HELLO, second: 'Other' }),
    asked: { n: 2 },
  },
  'a stream with blank lines before its first event': ofStream(
    inTurn(writes(''), signs(3000, '\n'), endsWith(...OVER, counted())),
    HELLO,
    patient,
  ),
  'a stream with signs of life before its first token': ofStream(
    inTurn(writes(''), signs(3000), endsWith(...OVER, counted())),
    HELLO,
    patient,
  ),
}

describeCases('is served with %s', {
  ...Object.fromEntries(rowsOf(TOOL_CALLS).map(toolCallCase)),
  ...ODD_CALLS,
  ...Object.fromEntries(rowsOf(FINISHES).map(finishCase)),
  ...ODD_FINISHES,
  ...Object.fromEntries(rowsOf(USAGES).map(usageCase)),
  ...USAGE_IN_STREAMS,
  ...MEMBERS,
  ...FORMS,
  ...PAUSES,
})
