/** The chat service: its resources, open while the API runs, the requests in progress, and its metrics. */
import type { Request } from 'express'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { KeyLimits } from '../accounts/rate-limiter.ts'
import type { Settings } from '../config.ts'
import type { Clock, Handler, Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import { jsonReader } from '../http/request-body.ts'
import type { Log } from '../process/log.ts'
import { answerCall, type Answered } from './answer.ts'
import { ChatCall, type Ending, type UsageRecord } from './call.ts'
import { openModels, type Models } from './configuration.ts'
import { candidatesFor } from './fallback.ts'
import { ProviderClient } from './provider.ts'
import { UsageRecords } from './records.ts'
import { readChatRequest } from './request.ts'

/** The default limits of one request, in milliseconds but for `drains`. */
export const CHAT_LIMITS = {
  /** Silence after which a waiting client gets a chunk without content: some give up after five seconds. */
  silenceMs: 4000,
  /** How long a reply is read after its client disconnected, to learn its usage. */
  drainMs: 30_000,
  /** How many such replies are read at the same time. */
  drains: 200,
  /** How long requests in progress may go on when the service stops. */
  stopMs: 5000,
}
export type ChatLimits = Readonly<typeof CHAT_LIMITS>

/** The chat service. */
export type Chat = Awaited<ReturnType<typeof openChat>>

type ChatOptions = {
  readonly settings: Settings
  readonly keyLimits: KeyLimits
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Registry
  /** Has the providers' keys, and proxies. */
  readonly environment: NodeJS.ProcessEnv
  readonly limits: ChatLimits
}

/**
 * Opens the chat service.
 * @throws UsageError if the routing configuration is invalid.
 */
export async function openChat(options: ChatOptions) {
  const { settings, keyLimits, clock, log, environment, limits } = options
  const models = await openModels(settings.MODELS_FILE, environment, log)
  const records = new UsageRecords(settings.DATA_DIR, log)
  const count = createChatMetrics(options.metrics, models, records)
  const client = new ProviderClient(environment)
  const calls = createCallsInProgress(limits)
  const dependencies = { client, log, silenceMs: limits.silenceMs }
  const readJson = jsonReader(settings.CHAT_BODY_MIB * 2 ** 20)

  /** Writes the usage record of a call, before the last byte of its reply, and counts its tokens. */
  async function finish(call: ChatCall, reply: Reply, ending: Ending): Promise<void> {
    const record = call.record(ending, reply.headersSent)
    // Not awaited, since a silent store must not hold a reply.
    void keyLimits.spend(call.caller, (record.prompt_tokens ?? 0) + (record.completion_tokens ?? 0))
    await records.write(record)
    calls.ended(call)
    count(record)
  }

  /** Answers a call but for the last part. An unreadable body has a usage record too. */
  async function answer(call: ChatCall, httpRequest: Request, reply: Reply): Promise<Answered> {
    await keyLimits.begin(call.caller)
    // The parsed body is not held until the reply ends.
    const request = await readJson(httpRequest, reply).then(readChatRequest)
    call.isStream = request.stream
    return await answerCall({ call, request, reply, ...candidatesFor(request, models.current) }, dependencies)
  }

  return {
    models,
    /** Answers a request, and writes its usage record. */
    complete: (async (httpRequest, reply) => {
      const call = new ChatCall(httpRequest, reply, clock())
      calls.began(call, reply)
      const ending = await answer(call, httpRequest, reply).catch(async (error: unknown) => {
        const status = error instanceof ApiError ? error.status : 500
        await finish(call, reply, { outcome: 'failed', status })
        throw error
      })
      await finish(call, reply, ending)
      ending.sendLast()
    }) satisfies Handler,
    /** Number of usage records that are not yet in a file, since the disk is full or failing. */
    recordsWaiting: () => records.waiting,
    /** Ends calls in progress; callers that wait receive an error. */
    cancel: calls.cancel,
    /** Ends calls in progress, writes their records, and closes everything. No request may follow. */
    async close(): Promise<void> {
      await calls.close()
      client.close()
      await records.close()
    },
  }
}

/** The requests in progress. If a client disconnects, a reply is cancelled or read to its end, within limits. */
function createCallsInProgress({ drainMs, drains, stopMs }: ChatLimits) {
  // No Set: V8 keeps each former table of a set that changes all the time, with its calls, until a full collection.
  const calls: ChatCall[] = []
  const draining = new Map<ChatCall, NodeJS.Timeout>()
  let wasLast: (() => void) | undefined

  function disconnected(call: ChatCall): void {
    if (!calls.includes(call)) return
    call.isDisconnected = true
    const isWorthReading = call.attempt?.provider.on_leave === 'finish'
    if (!isWorthReading || draining.size >= drains) return call.cancel()
    const timer = setTimeout(() => call.cancel(), drainMs)
    draining.set(call, timer)
  }

  const cancel = () => calls.forEach((call) => call.cancel())

  return {
    cancel,
    began(call: ChatCall, reply: Reply): void {
      calls.push(call)
      reply.once('close', () => {
        if (!reply.writableFinished) disconnected(call)
      })
    },
    /** The usage record of a call is written. */
    ended(call: ChatCall): void {
      calls.splice(calls.indexOf(call), 1)
      clearTimeout(draining.get(call))
      draining.delete(call)
      if (calls.length === 0) wasLast?.()
    },
    /** Resolves when no call is in progress; after `stopMs` it cancels the rest. */
    async close(): Promise<void> {
      if (calls.length === 0) return
      const timer = setTimeout(cancel, stopMs)
      await new Promise<void>((resolve) => (wasLast = resolve))
      clearTimeout(timer)
    },
  }
}

const CANDIDATE = ['model', 'provider'] as const

/** Upper bounds in seconds: from a cached first token to a long reasoning call. */
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

/** Keeps the chat metrics; returns a function that counts a request which is over. No label has what a client sent. */
function createChatMetrics(registry: Registry, models: Models, records: UsageRecords) {
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const histogram = (name: string, help: string) =>
    new Histogram({ name, help, labelNames: ['provider'], buckets: SECONDS, registers })
  const ended = [...CANDIDATE, 'outcome'] as const
  const answered = [...ended, 'status', 'stream'] as const
  const requests = counter('chat_requests_total', 'Requests by outcome and sent status.', answered)
  const unattributed = counter('chat_requests_unattributed_total', 'Requests without an app.', [])
  const tokens = counter('chat_tokens_total', 'Tokens by the count of the provider.', [...CANDIDATE, 'kind'])
  const usageMissing = counter('chat_usage_missing_total', 'Served requests of unknown tokens.', CANDIDATE)
  const attempts = counter('chat_attempts_total', 'Attempts by outcome: served, or the error type.', ended)
  const fallbacks = counter('chat_fallbacks_total', 'Requests that went on to the next one.', CANDIDATE)
  const firstToken = histogram('chat_first_token_seconds', 'From arrival to the first meaningful token.')
  const request = histogram('chat_request_duration_seconds', 'From the arrival of a request to its end.')
  const attempt = histogram('chat_attempt_duration_seconds', 'From the start of an attempt to its end.')
  showState(registry, models, records)
  return (record: UsageRecord): void => {
    const { outcome, status, stream, prompt_tokens, completion_tokens, first_token_ms } = record
    // None served the request.
    const provider = record.provider ?? 'none'
    const candidate = { model: record.model ?? 'none', provider }
    requests.inc({ ...candidate, outcome, status: String(status), stream: String(stream) })
    if (record.app === undefined) unattributed.inc()
    tokens.inc({ ...candidate, kind: 'prompt' }, prompt_tokens ?? 0)
    tokens.inc({ ...candidate, kind: 'completion' }, completion_tokens ?? 0)
    if (record.requests > 0 && prompt_tokens === null) usageMissing.inc(candidate)
    request.observe({ provider }, record.duration_ms / 1000)
    if (first_token_ms !== null) firstToken.observe({ provider }, first_token_ms / 1000)
    for (const [index, { model, provider: tried, error_type, duration_ms }] of record.attempts.entries()) {
      attempts.inc({ model, provider: tried, outcome: error_type ?? 'served' })
      attempt.observe({ provider: tried }, duration_ms / 1000)
      if (index < record.attempts.length - 1) fallbacks.inc({ model, provider: tried })
    }
  }
}

/** The gauges, read with each scrape. */
function showState(registry: Registry, models: Models, records: UsageRecords): void {
  const breakers: Gauge<'model' | 'provider'> = new Gauge({
    name: 'chat_breaker_open',
    help: '1 from the failures of the provider until it serves again, 0 otherwise.',
    labelNames: CANDIDATE,
    registers: [registry],
    collect() {
      breakers.reset()
      for (const [model, { providers }] of models.current?.models ?? [])
        for (const { name: provider, health } of providers)
          breakers.set({ model, provider }, health.openUntil === undefined ? 0 : 1)
    },
  })
  const waiting: Gauge = new Gauge({
    name: 'usage_records_waiting',
    help: 'Usage records that wait in memory for a full or failing disk.',
    registers: [registry],
    collect: () => waiting.set(records.waiting),
  })
}
