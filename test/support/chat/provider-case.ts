/** Table-driven tests of a provider's behaviour and the service's reply: whole and streamed, alone and with a backup. */
import { ChatResult$inboundSchema, ChatStreamChunk$inboundSchema } from '@openrouter/sdk/models'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readText } from './chat-stream.ts'
import { MESSAGES, startScriptedChat, type ScriptedChat } from './chat.ts'
import { answers, json, sse, stream, type Behaviour } from './upstream.ts'

/** What a client assembles from a reply. */
interface Served {
  readonly content?: string | null
  /** Name and arguments of each tool call. */
  readonly calls?: readonly (readonly [string, string])[]
  readonly finish?: string
  readonly native?: string
  /** Prompt and completion tokens in the record; null if unknown. */
  readonly tokens?: readonly [number, number] | null
  /** Further members of the message. */
  readonly more?: Readonly<Record<string, unknown>>
}

/** The error for the client; `backup`: whether the service tries the model's next provider. */
interface Failed {
  readonly status: number
  readonly type: string
  /** Null if it must be absent. */
  readonly retryAfter?: string | null
  readonly backup: boolean
}

/** A stream that broke off after its first words were sent. */
interface Cut {
  readonly cut: string
}

export type Outcome = Served | Failed | Cut

export interface ProviderCase {
  readonly whole: Behaviour
  readonly streamed: Behaviour
  readonly outcome: Outcome
  /** Set if the stream has another result. */
  readonly streamOutcome?: Outcome
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
export function does(behaviour: Behaviour, outcome: Outcome, streamOutcome = outcome): ProviderCase {
  return { whole: behaviour, streamed: behaviour, outcome, streamOutcome }
}

/** A service with two models per case, alone and with a backup, so that cases share no circuit breaker. */
async function startCases(names: readonly string[]): Promise<ScriptedChat> {
  const chat = await startScriptedChat({
    wire: (provider) =>
      Object.fromEntries(
        names.flatMap((name) => {
          const first = { ...provider, name: 'first' }
          const backup = { ...provider, name: 'backup', model: 'backup' }
          return [
            [modelOf(name, false), [first]],
            [modelOf(name, true), [first, backup]],
          ]
        }),
      ),
  })
  chat.upstream.behaviours['backup'] = answers()
  return chat
}

function modelOf(name: string, backed: boolean): string {
  return `${backed ? 'backed' : 'alone'}/${name.replaceAll(/\W+/g, '-')}`
}

const callSchema = z.looseObject({
  index: z.int().optional(),
  id: z.string().optional(),
  type: z.string().optional(),
  function: z.looseObject({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
})
const partSchema = z.looseObject({
  content: z.string().nullish(),
  tool_calls: z.array(callSchema).optional(),
})
const choiceSchema = z.looseObject({
  index: z.int(),
  delta: partSchema.optional(),
  message: partSchema.optional(),
  finish_reason: z.string().nullable(),
  native_finish_reason: z.string().optional(),
})
const replySchema = z.looseObject({
  provider: z.string(),
  choices: z.array(choiceSchema).min(1),
  usage: z
    .looseObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() })
    .optional(),
})
const errorSchema = z.looseObject({
  error: z.looseObject({ code: z.int(), metadata: z.looseObject({ error_type: z.string() }) }),
})
const FINISHES = ['stop', 'length', 'tool_calls', 'content_filter', 'function_call']

/** Runs a case once: with or without `stream`, alone or with the backup. */
async function runCase(
  chat: ScriptedChat,
  [name, one]: readonly [string, ProviderCase],
  { streams, backed }: { readonly streams: boolean; readonly backed: boolean },
): Promise<void> {
  chat.script(streams ? one.streamed : one.whole)
  const before = chat.records().length
  const response = await chat.api.post({
    model: modelOf(name, backed),
    messages: MESSAGES,
    stream: streams,
  })
  const { text, isBroken } = await readText(response)
  expect(text).not.toContain('secret')
  expect(isBroken).toBe('cut' in (streams ? (one.streamOutcome ?? one.outcome) : one.outcome))
  const records = chat.records().slice(before)
  expect(records).toHaveLength(1)
  const outcome = streams ? (one.streamOutcome ?? one.outcome) : one.outcome
  if ('status' in outcome) checkFailed(response, text, { outcome, backed })
  else if ('cut' in outcome) checkCut(text, outcome)
  else checkServed(text, outcome, { streams, record: records[0] ?? {} })
}

function checkFailed(
  response: Response,
  text: string,
  { outcome, backed }: { readonly outcome: Failed; readonly backed: boolean },
): void {
  if (backed && outcome.backup) return expect(text).toContain('"provider":"backup"')
  const { error } = errorSchema.parse(JSON.parse(text))
  expect({ status: response.status, type: error.metadata.error_type }).toEqual({
    status: outcome.status,
    type: outcome.type,
  })
  if (outcome.retryAfter !== undefined) expect(response.headers.get('Retry-After')).toBe(outcome.retryAfter)
}

function checkCut(text: string, { cut }: Cut): void {
  expect(text).toContain(cut)
  // Some clients look for the error in the first key.
  expect(text).toMatch(/data: \{"error":\{.*"finish_reason":"error"/)
  expect(text).not.toContain('[DONE]')
}

function checkServed(
  text: string,
  { content, calls = [], finish = 'stop', native, tokens = [11, 7], more = {} }: Served,
  { streams, record }: { readonly streams: boolean; readonly record: Readonly<Record<string, unknown>> },
): void {
  const got = streams ? streamedReply(text) : wholeReply(text)
  expect(got.provider).toBe('first')
  expect(FINISHES).toContain(got.finish)
  if (content !== undefined) expect(got.content ?? '').toBe(content ?? '')
  expect({ calls: got.calls, finish: got.finish, native: got.native }).toEqual({ calls, finish, native })
  expect(got.more).toMatchObject(more)
  const [prompt, completion] = tokens ?? [null, null]
  expect(record).toMatchObject({ prompt_tokens: prompt, completion_tokens: completion })
  expect(got.usage).toMatchObject({ prompt_tokens: prompt ?? 0, completion_tokens: completion ?? 0 })
}

function wholeReply(text: string) {
  // The strictest client.
  ChatResult$inboundSchema.parse(JSON.parse(text))
  const { provider, choices, usage, ...top } = replySchema.parse(JSON.parse(text))
  const [first] = choices
  if (first === undefined) throw new TypeError('The reply has no choice')
  const { message = {}, ...choice } = first
  return {
    provider,
    usage,
    content: message.content,
    calls: namesAndArguments(message.tool_calls ?? []),
    finish: choice.finish_reason,
    native: choice.native_finish_reason,
    more: { ...top, ...choice, ...message },
  }
}

function streamedReply(text: string) {
  const data = text.split('\n\n').filter((event) => event.startsWith('data: '))
  expect(data.at(-1)).toBe('data: [DONE]')
  const values = data.slice(0, -1).map((event): unknown => JSON.parse(event.slice(6)))
  for (const value of values) ChatStreamChunk$inboundSchema.parse(value)
  const chunks = values.map((value) => replySchema.parse(value))
  const choices = chunks.flatMap((chunk) => chunk.choices).filter(({ index }) => index === 0)
  const last = choices.at(-1)
  const parts = choices.map(({ delta }) => delta ?? {})
  return {
    provider: chunks[0]?.provider,
    usage: chunks.at(-1)?.usage,
    content: parts.map(({ content }) => content ?? '').join(''),
    calls: namesAndArguments(joinedCalls(parts.flatMap(({ tool_calls: calls }) => calls ?? []))),
    finish: last?.finish_reason,
    native: last?.native_finish_reason,
    more: Object.assign({}, ...chunks, ...choices, ...parts),
  }
}

type Call = z.infer<typeof callSchema>

/** Assembles a tool call as clients do: the first part has id, type and name, later ones add to its arguments. */
function joinedCalls(parts: readonly Call[]): readonly Call[] {
  const calls = Map.groupBy(parts, ({ index }) => z.int().parse(index))
  const said = (own: readonly Call[], key: 'name' | 'arguments') =>
    own.map(({ function: inner }) => inner?.[key] ?? '').join('')
  return [...calls.values()].map((own) => ({
    ...own[0],
    function: { name: said(own, 'name'), arguments: said(own, 'arguments') },
  }))
}

function namesAndArguments(calls: readonly Call[]): [string, string][] {
  expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length)
  return calls.map(({ id, type, function: inner }) => {
    expect(id).toMatch(/./)
    expect(type).toBe('function')
    return [inner?.name ?? '', inner?.arguments ?? '']
  })
}

/** The four ways to run each case. */
const WAYS = [
  { way: 'whole, alone', streams: false, backed: false },
  { way: 'whole, with a backup', streams: false, backed: true },
  { way: 'streamed, alone', streams: true, backed: false },
  { way: 'streamed, with a backup', streams: true, backed: true },
] as const

/** Makes the tests of cases, each by its name in `title` and in each of the ways. */
export function describeCases(title: string, named: Readonly<Record<string, ProviderCase>>): void {
  const cases = Object.entries(named)
  let chat: ScriptedChat
  beforeAll(async () => {
    chat = await startCases(Object.keys(named))
  })
  afterAll(() => chat.stop())

  describe.each(WAYS)('a provider for a request $way', (way) => {
    it.each(cases)(title, async (name, one) => {
      await runCase(chat, [name, one], way)
    })
  })
}
