/**
 * Tables of providers' behaviour: each row runs whole and streamed, alone and with a backup, and every reply is read as a
 * strict client does.
 */
import { ChatResult$inboundSchema, ChatStreamChunk$inboundSchema } from '@openrouter/sdk/models'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { appIdOf } from '../../../pipeline/contract/app-identity.ts'
import { readText, startScriptedChat, type ScriptedChat } from './chat.ts'
import { answers, chunk, either, events, held, json, sse, stream, type Behaviour } from './upstream.ts'

type Members = Readonly<Record<string, unknown>>

/** What a client assembles from a reply. */
type Served = {
  readonly content?: string
  /** Name and arguments of each tool call. */
  readonly calls?: readonly (readonly [string, string])[]
  readonly finish?: string
  /** The provider's own word for the finish. */
  readonly native?: string
  /** Tokens in the record: prompt, completion, and of these cached and reasoning; null if unknown. */
  readonly tokens?: readonly (number | null)[] | null
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
type Cut = { readonly cut: string; readonly type?: string }

export type Outcome = Served | Failed | Cut

/** Cases by name. */
export type Cases = Readonly<Record<string, ProviderCase>>

type ProviderCase = {
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
  begin: readonly unknown[] = [chunk({ content: 'Hel' })],
): ProviderCase {
  const { behaviour, goOn } = held(events(...begin), end)
  return { ...ofStream(behaviour, outcome), goOn }
}

/** The rows of a table in text; columns are parted by bars. */
export const rowsOf = (table: string) =>
  table
    .trim()
    .split('\n')
    .map((row) => row.split(' | '))

/** Deadlines beyond any test. */
const HOUR_MS = 3_600_000
export const UNHURRIED = { first_token_ms: HOUR_MS, idle_ms: HOUR_MS, total_ms: HOUR_MS }

/** A service with a model for each case in each way, so that they share no circuit breaker. */
function startCases(cases: Cases): Promise<ScriptedChat> {
  const behaviours = Object.entries(cases).map(([name, { streamed, whole = streamed }]) => [
    name,
    either(whole, streamed),
  ])
  const models = Object.entries(cases).flatMap(([model, { provider }]) => {
    const first = { model, timeouts: UNHURRIED, ...provider, name: 'first' }
    const backup = { model: 'backup', name: 'backup' }
    return WAYS.map((way) => [modelOf(model, way), way.backed ? [first, backup] : [first]])
  })
  return startScriptedChat({
    behaviours: { ...Object.fromEntries(behaviours), backup: answers() },
    models: Object.fromEntries(models),
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

const APP = 'app.example'

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
  const headers = { 'HTTP-Referer': `https://${APP}` }
  const response = await chat.api.ask({ model, stream: streams, ...more }, { headers })
  const { text, isBroken } = await readText(
    response,
    goOn && ((read) => void (read.includes('Hel') && goOn())),
  )
  expect(text).not.toContain('secret')
  expect(response.headers.get('X-App-Id')).toBe(String(appIdOf(APP)))
  const outcome = streams ? streamOutcome : usual
  // A provider gets a request once.
  expect(asked()).toBe(before + 1)
  const records = chat.records(response.headers.get('X-Request-Id') ?? '')
  expect(records).toHaveLength(1)
  const [record = {}] = records
  expect(isBroken).toBe('cut' in outcome)
  if ('status' in outcome) {
    if (backed) checkReplaced(text, record, outcome)
    else checkFailed(response, text, record, outcome)
    return
  }
  expect(record).toMatchObject({ provider: 'first', model, requests: 1, status: 200, stream: streams })
  if (streams) {
    expect(response.headers.get('Content-Type')).toBe('text/event-stream; charset=utf-8')
    // Proxies on the way do not buffer it.
    expect(response.headers.get('X-Accel-Buffering')).toBe('no')
  }
  if ('cut' in outcome) checkCut(text, record, outcome)
  else checkServed(streams ? await assembled(text) : wholeReply(text), record, outcome)
}

const errorSchema = z.looseObject({
  code: z.int(),
  message: z.string(),
  metadata: z.looseObject({ error_type: z.string() }),
})

function checkFailed(response: Response, text: string, record: Members, outcome: Failed): void {
  const { status, type, retryAfter, message = '' } = outcome
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
const messageOf = <Call extends z.ZodType>(call: Call) =>
  z.looseObject({ content: z.string().nullish(), tool_calls: z.array(call).optional() }).optional()
const choiceSchema = z.looseObject({
  index: z.int(),
  delta: messageOf(partSchema),
  message: messageOf(callSchema),
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
  const data = [...text.matchAll(/^data: (.*)\n\n/gm)].map(([, sent = '']) => sent)
  const isWhole = data.at(-1) === '[DONE]'
  const chunks = data.slice(0, isWhole ? -1 : undefined).map((one) => replySchema.parse(JSON.parse(one)))
  const identities = chunks.map(({ id, created, object, model }) => [id, created, object, model].join())
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
  expect(record).toMatchObject({ outcome: 'cut', prompt_tokens: null })
}

function checkServed({ choices, ...top }: Reply, record: Members, outcome: Served): void {
  const { content, calls = [], finish = 'stop', native, more = {}, second, tokens = [11, 7] } = outcome
  expect(top).toMatchObject({ model: record['model'], provider: 'first' })
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
  checkUsage(top.usage, record, tokens)
}

function checkUsage(usage: Reply['usage'], record: Members, tokens: Served['tokens']): void {
  const [prompt = null, completion = null, cached = null, reasoning = null] = tokens ?? []
  expect(usage).toMatchObject({ prompt_tokens: prompt ?? 0, completion_tokens: completion ?? 0 })
  expect(record).toMatchObject({
    outcome: 'completed',
    prompt_tokens: prompt,
    completion_tokens: completion,
    cached_tokens: cached,
    reasoning_tokens: reasoning,
    usage_missing: tokens === null ? 'the provider reported none' : null,
  })
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
export function describeCases(title: string, cases: Cases): void {
  let chat: ScriptedChat
  beforeAll(async () => {
    chat = await startCases(cases)
  })

  describe.each(WAYS)('a provider for a request $way', (way) => {
    const own = Object.entries(cases).filter(([, { whole }]) => way.streams || whole !== undefined)
    it.concurrent.each(own)(title, async (name, one) => {
      await runCase(chat, [name, one], way)
    })
  })
}
