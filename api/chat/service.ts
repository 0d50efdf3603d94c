/** The chat service: its resources, open while the API runs, and the requests in progress. */
import type { Registry } from 'prom-client'
import type { KeyLimits } from '../accounts/limits/key-limits.ts'
import type { Clock, Reply } from '../http/call.ts'
import type { Settings } from '../config.ts'
import type { Log } from '../process/log.ts'
import { createAnswers, type Answer } from './answer.ts'
import { namedApp } from './app.ts'
import { ChatCall, type Ending } from './call.ts'
import { openModels, type Models } from './models.ts'
import { createFallback } from './fallback.ts'
import { createChatMetrics } from './metrics.ts'
import { createProviderClient } from './provider.ts'
import { UsageRecords } from './records.ts'

/** Limits of one request, in milliseconds but for `drains`. */
export interface ChatLimits {
  /** Silence after which a waiting client gets a chunk without content. */
  readonly silenceMs: number
  /** How long a reply is read after its client disconnected, to learn its usage. */
  readonly drainMs: number
  /** How many such replies are read at the same time. */
  readonly drains: number
  /** How long requests in progress may go on when the service stops. */
  readonly stopMs: number
}

/** The default limits. Some clients give up after five seconds of silence. */
export const CHAT_LIMITS: ChatLimits = { silenceMs: 4000, drainMs: 30_000, drains: 200, stopMs: 5000 }

export interface Chat {
  readonly models: Models
  /** Maximum bytes of a request body. */
  readonly bodyLimit: number
  readonly whole: Answer
  readonly stream: Answer
  /** Begins the call of a request. */
  begin(headers: NodeJS.Dict<string[]>, reply: Reply): ChatCall
  /**
   * Counts the call against the limits of its key.
   * @throws {ApiError} 429 if one is used up.
   */
  admit(call: ChatCall): Promise<void>
  /** Writes the usage record of a call, counts its tokens, and ends it. */
  finish(call: ChatCall, ending: Ending): Promise<void>
  /** Number of usage records that are not yet in a file, since the disk is full or failing. */
  recordsWaiting(): number
  /** Ends calls in progress; callers that wait receive an error. */
  cancel(): void
  /** Ends calls in progress, writes their records, and closes everything. No request may follow. */
  close(): Promise<void>
}

interface ChatOptions {
  readonly settings: Settings
  readonly keyLimits: KeyLimits
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Registry
  /** Holds the providers' keys. */
  readonly environment: NodeJS.ProcessEnv
  readonly limits: ChatLimits
}

const MEBIBYTE = 1024 * 1024

/** The request header that enables attempts and app in the response. */
const METADATA_HEADER = 'x-router-metadata'

/**
 * Opens the chat service.
 * @throws {OperatorError} if the routing configuration is invalid.
 */
export async function openChat(options: ChatOptions): Promise<Chat> {
  const { settings, keyLimits, clock, log, environment, limits } = options
  const models = await openModels(settings.MODELS_FILE, environment, log)
  const records = new UsageRecords(settings.DATA_DIR, log)
  const waiting = () => records.waiting
  const metrics = createChatMetrics(options.metrics, { models: () => models.current(), waiting })
  const client = createProviderClient(environment)
  const calls = createCallsInProgress(limits)

  async function finish(call: ChatCall, ending: Ending): Promise<void> {
    const record = call.finish(ending)
    if (record === undefined) return
    // Not awaited, since a silent store must not hold a reply.
    void keyLimits.spend(call.caller, (record.prompt_tokens ?? 0) + (record.completion_tokens ?? 0))
    await records.write(record)
    calls.ended(call)
    metrics.requestFinished(record)
  }

  const fallback = createFallback({ metrics, log })
  return {
    models,
    bodyLimit: settings.CHAT_BODY_MIB * MEBIBYTE,
    ...createAnswers({ client, fallback, finish, silenceMs: limits.silenceMs }),
    begin(headers, reply) {
      const app = namedApp(headers)
      const { requestId, caller } = reply.locals
      if (caller === undefined) throw new TypeError('Only an authenticated request can begin')
      const call = new ChatCall({ requestId, caller, arrivedAt: clock(), app })
      reply.set('X-App-Id', String(app.id))
      if (headers[METADATA_HEADER]?.[0] === 'enabled') {
        const described = { app_id: app.id, found_by: app.foundBy }
        reply.locals.routerMetadata = () => ({ attempts: call.attempts, app: described })
      }
      calls.began(call, reply)
      return call
    },
    admit: ({ caller }) => keyLimits.begin(caller),
    finish,
    recordsWaiting: waiting,
    cancel: () => calls.cancel(),
    async close() {
      await calls.close()
      client.close()
      await records.close()
    },
  }
}

/** The requests in progress. If a client disconnects, a reply is cancelled or read to its end, within limits. */
function createCallsInProgress({ drainMs, drains, stopMs }: ChatLimits) {
  const calls = new Set<ChatCall>()
  const draining = new Map<ChatCall, NodeJS.Timeout>()
  let whenEmpty: (() => void) | undefined

  function disconnected(call: ChatCall): void {
    if (!calls.has(call)) return
    call.disconnected()
    if (!call.finishesAlone || draining.size >= drains) return call.cancel()
    const timer = setTimeout(() => call.cancel(), drainMs)
    draining.set(call, timer)
  }

  function cancel(): void {
    for (const call of calls) call.cancel()
  }

  return {
    cancel,
    began(call: ChatCall, reply: Reply): void {
      calls.add(call)
      // A client that disconnected during the key look-up sends no further close event.
      if (reply.closed) return call.disconnected()
      reply.once('close', () => {
        if (!reply.writableFinished) disconnected(call)
      })
    },
    /** The usage record of a call is written. */
    ended(call: ChatCall): void {
      calls.delete(call)
      clearTimeout(draining.get(call))
      draining.delete(call)
      if (calls.size === 0) whenEmpty?.()
    },
    /** Resolves when no call is in progress; after `stopMs` it cancels the rest. */
    async close(): Promise<void> {
      if (calls.size === 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      whenEmpty = resolve
      const timer = setTimeout(cancel, stopMs)
      await promise
      clearTimeout(timer)
    },
  }
}
