/**
 * Tables of providers' behaviour: each row runs whole and streamed, alone and with a backup, and every reply is read as a
 * strict client does.
 */
import { ChatResult$inboundSchema, ChatStreamChunk$inboundSchema } from '@openrouter/sdk/models'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MESSAGES, readText, startScriptedChat, type ScriptedChat } from './chat.ts'
import { answers, chunk, either, held, json, sse, stream, writes, type Behaviour } from './upstream.ts'

type Members = Readonly<Record<string, unknown>>

/** What a client assembles from a reply. */
type Served = {
  readonly content?: string
  /** Name and arguments of each tool call. */
  readonly calls?: readonly (readonly [string, string])[]
  readonly finish?: string
  /** The provider's own word for the finish. */
  readonly native?: string
  /** Prompt and completion tokens in the record; null if unknown. */
  readonly tokens?: readonly [number, number] | null
  /** Further members of the message, its choice, and the reply. */
  readonly more?: Members
  /** The content of the second choice. */
  readonly second?: string
}

/** The error for the client; with a backup, that serves instead. */
type Failed = {
  readonly status: number
  readonly type: string
  /** The type of the attempt, if it differs. */
  readonly attempt?: string
  /** Null if it must be absent; a text or a matcher. */
  readonly retryAfter?: unknown
  /** Words of the message. */
  readonly message?: string
}

/** A stream that broke off after its first words were sent. */
type Cut = {
  readonly cut: string
  readonly type?: string
}

export type Outcome = Served | Failed | Cut

export type ProviderCase = {
  /** Absent in a case of streams alone. */
  readonly whole?: Behaviour
  readonly streamed: Behaviour
  readonly outcome: Outcome
  /** Set if the stream has another result. */
  readonly streamOutcome?: Outcome
  /** Called once the client has the first word of a stream. */
  readonly goOn?: () => void
  /** Further keys of the provider in the configuration. */
  readonly provider?: Members
  /** Further members of the request. */
  readonly asked?: Members
}

/** A case in which the provider sends this completion, or these chunks. */
export function sends(
  whole: unknown,
  chunks: readonly unknown[],
  outcome: Outcome,
  streamOutcome = outcome,
): ProviderCase {
  return { whole: json(whole), streamed: stream(sse(chunks)), outcome, streamOutcome }
}

/** A case in which the provider does the same for whole replies and streams. */
export function does(behaviour: Behaviour, outcome: Outcome): ProviderCase {
  return { whole: behaviour, streamed: behaviour, outcome }
}

/** A case of a stream alone. */
export function ofStream(streamed: Behaviour, outcome: Outcome, provider: Members = {}): ProviderCase {
  return { streamed, outcome, provider }
}

/** A case of a stream that goes on in this way once the client has its first word, `Hel`. */
export function goesOn(
  end: Behaviour,
  outcome: Outcome,
  { begin = sse([chunk({ content: 'Hel' })], false) } = {},
): ProviderCase {
  const { behaviour, goOn } = held(writes(begin), end)
  return { ...ofStream(behaviour, outcome), goOn }
}

/** Deadlines beyond any test. */
const HOUR_MS = 3_600_000
export const UNHURRIED = { first_token_ms: HOUR_MS, idle_ms: HOUR_MS, total_ms: HOUR_MS }

/** A service with a model for each case in each way, so that they share no circuit breaker. */
function startCases(cases: readonly (readonly [string, ProviderCase])[]): Promise<ScriptedChat> {
  return startScriptedChat({
    behaviours: {
      ...Object.fromEntries(
        cases.map(([name, { streamed, whole = streamed }]) => [name, either(whole, streamed)]),
      ),
      backup: answers(),
    },
    wire: ({ base_url }) =>
      Object.fromEntries(
        cases.flatMap(([name, { provider }]) => {
          const first = { base_url, model: name, timeouts: UNHURRIED, ...provider, name: 'first' }
          const backup = { base_url, model: 'backup', name: 'backup' }
          return WAYS.map((way) => [modelOf(name, way), way.backed ? [first, backup] : [first]])
        }),
      ),
    modelLimits: { total_ms: HOUR_MS },
  })
}

/** The four ways to run each case. */
const WAYS = [
  { way: 'whole, alone', streams: false, backed: false },
  { way: 'whole, with a backup', streams: false, backed: true },
  { way: 'streamed, alone', streams: true, backed: false },
  { way: 'streamed, with a backup', streams: true, backed: true },
] as const
type Way = (typeof WAYS)[number]

const modelOf = (name: string, { way }: Way) => `${way}/${name}`.replaceAll(/[^\w/]+/g, '-')

/** Runs a case once: with or without `stream`, alone or with the backup. */
async function runCase(
  chat: ScriptedChat,
  [name, { outcome: usual, streamOutcome = usual, goOn, asked: more }]: readonly [string, ProviderCase],
  way: Way,
): Promise<void> {
  const { streams, backed } = way
  const asked = () => chat.upstream.asked().filter((one) => one === name).length
  const before = asked()
  const model = modelOf(name, way)
  const response = await chat.api.post({ model, messages: MESSAGES, stream: streams, ...more })
  const { text, isBroken } = await readText(
    response,
    goOn && ((read) => void (read.includes('Hel') && goOn())),
  )
  expect(text).not.toContain('secret')
  const outcome = streams ? streamOutcome : usual
  // A provider gets a request once.
  expect(asked()).toBe(before + 1)
  const records = chat.records(response.headers.get('X-Request-Id') ?? '')
  expect(records).toHaveLength(1)
  const [record = {}] = records
  expect(isBroken).toBe('cut' in outcome)
  if (streams && !('status' in outcome)) {
    expect(response.headers.get('Content-Type')).toBe('text/event-stream; charset=utf-8')
    // Proxies on the way do not buffer it.
    expect(response.headers.get('X-Accel-Buffering')).toBe('no')
  }
  if ('cut' in outcome) checkCut(text, record, outcome)
  else if (!('status' in outcome)) await checkServed(text, record, { outcome, streams, model })
  else if (backed) checkReplaced(text, record, outcome)
  else checkFailed(response, text, { record, outcome })
}

const errorSchema = z.looseObject({
  code: z.int(),
  message: z.string(),
  metadata: z.looseObject({ error_type: z.string() }),
})

function checkFailed(
  response: Response,
  text: string,
  { record, outcome: { status, type, retryAfter, message = '' } }: { record: Members; outcome: Failed },
): void {
  const { error } = z.looseObject({ error: errorSchema }).parse(JSON.parse(text))
  expect({ status: response.status, type: error.metadata.error_type }).toEqual({ status, type })
  expect(error.message).toContain(message)
  if (retryAfter !== undefined) expect(response.headers.get('Retry-After')).toEqual(retryAfter)
  expect(record).toMatchObject({ outcome: 'failed', requests: 0, status, prompt_tokens: null })
}

function checkReplaced(text: string, record: Members, { type, attempt = type }: Failed): void {
  expect(text).toContain('"provider":"backup"')
  const attempts = [
    { provider: 'first', error_type: attempt },
    { provider: 'backup', status: 200, error_type: null },
  ]
  expect(record).toMatchObject({ outcome: 'completed', provider: 'backup', requests: 1, attempts })
}

const partSchema = z.looseObject({
  id: z.string().optional(),
  function: z.looseObject({ name: z.string().optional() }).optional(),
})
const callSchema = z.looseObject({
  id: z.string().min(1),
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
})
const choiceSchema = z.looseObject({
  index: z.int(),
  delta: z
    .looseObject({ content: z.string().nullish(), tool_calls: z.array(partSchema).optional() })
    .optional(),
  message: z
    .looseObject({ content: z.string().nullish(), tool_calls: z.array(callSchema).optional() })
    .optional(),
  finish_reason: z
    .enum(['stop', 'length', 'tool_calls', 'content_filter', 'function_call', 'error'])
    .nullable(),
  native_finish_reason: z.string().optional(),
})
const replySchema = z.looseObject({
  id: z.string().min(1),
  object: z.enum(['chat.completion', 'chat.completion.chunk']),
  created: z.int(),
  model: z.string(),
  provider: z.string(),
  choices: z.array(choiceSchema),
  usage: z
    .looseObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() })
    .optional(),
  error: errorSchema.optional(),
})
type Reply = z.infer<typeof replySchema>

/** The chunks of a stream, all of one reply; `isWhole` if [DONE] follows. */
export function readChunks(text: string) {
  const events = text.split('\n\n').filter((event) => event.startsWith('data: '))
  const data = events.map((event) => event.slice('data: '.length))
  const isWhole = data.at(-1) === '[DONE]'
  const chunks = data.slice(0, isWhole ? -1 : undefined).map((one) => replySchema.parse(JSON.parse(one)))
  const identities = chunks.map(({ id, created, object, model }) =>
    JSON.stringify({ id, created, object, model }),
  )
  expect(new Set(identities).size).toBeLessThan(2)
  const first = chunks.flatMap(({ choices }) => choices).filter(({ index }) => index === 0)
  return { chunks, isWhole, content: first.map(({ delta }) => delta?.content ?? '').join('') }
}

function checkCut(text: string, record: Members, { cut, type = 'provider_unavailable' }: Cut): void {
  const { chunks, isWhole, content } = readChunks(text)
  expect({ content, isWhole }).toEqual({ content: cut, isWhole: false })
  const code = type === 'timeout' ? 408 : 502
  const choices = [{ finish_reason: 'error' }]
  expect(chunks.at(-1)).toMatchObject({ error: { code, metadata: { error_type: type } }, choices })
  // Some clients look for the error in the first key.
  expect(text).toMatch(/data: \{"error":\{[^\n]*\n\n$/)
  expect(record).toMatchObject({ outcome: 'cut', requests: 1, prompt_tokens: null })
}

async function checkServed(
  text: string,
  record: Members,
  {
    outcome,
    streams,
    model,
  }: { readonly outcome: Served; readonly streams: boolean; readonly model: string },
): Promise<void> {
  const reply = streams ? await assembled(text) : wholeReply(text)
  expect(reply).toMatchObject({ model, provider: 'first' })
  checkReply(reply, outcome)
  const { tokens = [11, 7] } = outcome
  const [prompt, completion] = tokens ?? [null, null]
  expect(reply.usage).toMatchObject({ prompt_tokens: prompt ?? 0, completion_tokens: completion ?? 0 })
  expect(record).toMatchObject({
    provider: 'first',
    model,
    requests: 1,
    outcome: 'completed',
    status: 200,
    stream: streams,
    prompt_tokens: prompt,
    completion_tokens: completion,
    usage_missing: tokens === null ? 'the provider reported none' : null,
  })
}

function checkReply(
  { choices, ...top }: Reply,
  { content, calls = [], finish = 'stop', native, more = {}, second }: Served,
): void {
  const [{ message = {}, ...choice }, other] = z.tuple([choiceSchema], choiceSchema).parse(choices)
  if (content !== undefined) expect(message.content ?? '').toBe(content)
  const { tool_calls: got = [] } = message
  expect({
    calls: got.map(({ function: { name, arguments: sent } }) => [name, sent.trim()]),
    ids: new Set(got.map(({ id }) => id)).size,
    finish: choice.finish_reason,
    native: choice.native_finish_reason,
  }).toEqual({ calls, ids: calls.length, finish, native })
  expect({ ...top, ...choice, ...message }).toMatchObject(more)
  expect(other?.message?.content).toBe(second)
}

function wholeReply(text: string): Reply {
  // The strictest client.
  ChatResult$inboundSchema.parse(JSON.parse(text))
  const { choices, ...top } = replySchema.parse(JSON.parse(text))
  const members = [top, ...choices.flatMap(({ message, ...choice }) => [choice, message ?? {}])]
  const nulls = members.flatMap((one) => Object.keys(one).filter((key) => Reflect.get(one, key) === null))
  // Strict clients accept these alone.
  expect(['content', 'system_fingerprint']).toEqual(expect.arrayContaining(nulls))
  return { ...top, choices }
}

/** A stream as the official client assembles it. */
async function assembled(text: string): Promise<Reply> {
  const { chunks, isWhole } = readChunks(text)
  expect(isWhole).toBe(true)
  for (const value of chunks) ChatStreamChunk$inboundSchema.parse(value)
  // Usage and finish are in the last chunk alone.
  const isEnd = ({ usage, choices }: Reply) => usage !== undefined || choices.some((one) => one.finish_reason)
  expect(chunks.filter(isEnd)).toEqual(chunks.slice(-1))
  const lines = new Blob(chunks.map((one) => `${JSON.stringify(one)}\n`)).stream()
  const whole = await ChatCompletionStream.fromReadableStream(lines).finalChatCompletion()
  const reply = replySchema.parse(whole)
  // Other clients join what each part says: id and name are in one part of a call alone.
  const calls = reply.choices.flatMap(({ message }) => message?.tool_calls ?? [])
  const parts = chunks.flatMap(({ choices }) => choices).flatMap(({ delta }) => delta?.tool_calls ?? [])
  const heads = parts.filter(({ id, function: inner }) => id !== undefined || inner?.name !== undefined)
  expect(heads).toHaveLength(calls.length)
  return { ...reply, provider: chunks[0]?.provider ?? '' }
}

/** Makes the tests of cases, each by its name in `title` and in each of the ways. */
export function describeCases(title: string, named: Readonly<Record<string, ProviderCase>>): void {
  const cases = Object.entries(named)
  let chat: ScriptedChat
  beforeAll(async () => {
    chat = await startCases(cases)
  })
  afterAll(() => chat.stop())

  describe.each(WAYS)('a provider for a request $way', (way) => {
    const own = cases.filter(([, { whole }]) => way.streams || whole !== undefined)
    it.concurrent.each(own)(title, async (name, one) => {
      await runCase(chat, [name, one], way)
    })
  })
}
