/** The chat service: its resources, open while the API runs, and the requests in progress. */
import type { Request } from 'express'
import type { Registry } from 'prom-client'
import type { KeyLimits } from '../accounts/rate-limiter.ts'
import type { Settings } from '../config.ts'
import type { Clock, Handler, Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import { jsonReader } from '../http/request-body.ts'
import type { Log } from '../process/log.ts'
import { answerCall, type Answered } from './answer.ts'
import { ChatCall, type Ending } from './call.ts'
import { openModels } from './configuration.ts'
import { candidatesFor } from './fallback.ts'
import { createChatMetrics } from './metrics.ts'
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
    const { body, passedOn } = await readJson(httpRequest, reply)
    const request = readChatRequest(body, passedOn)
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
