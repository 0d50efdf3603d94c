/** The chat service: what answers requests, kept open while the API runs. */
import type { Registry } from 'prom-client'
import type { Reply, Clock } from '../http/call.ts'
import type { Settings } from '../config.ts'
import type { Log } from '../process/log.ts'
import type { Store } from '../store/store.ts'
import { createStreamAnswer, createWholeAnswer, type Answer } from './answer.ts'
import type { RequestHeaders } from './apps/app-claim.ts'
import { openAttribution } from './apps/attribution.ts'
import { createBreakers, type Breakers } from './routing/breaker.ts'
import { ChatCall, type Ending } from './chat-call.ts'
import { createCallsUnderWay, type CallLimits } from './open-calls.ts'
import { candidatesIn } from './routing/candidates.ts'
import { createChatMetrics, watchUsageLog } from './metrics.ts'
import { createFallback } from './routing/fallback.ts'
import { openModels, type Models } from './routing/models.ts'
import { openUsageLog } from './records/usage-log.ts'
import { createUpstream } from './upstream/upstream.ts'

/** What one request may cost. */
export interface ChatLimits extends CallLimits {
  /** Milliseconds of silence after which a waiting client gets a comment. */
  readonly silenceMs: number
}

/** The limits in force unless a test brings its own. */
export const CHAT_LIMITS: ChatLimits = { silenceMs: 15_000, drainMs: 30_000, drains: 200, stopMs: 5000 }

export interface Chat {
  readonly models: Models
  /** Bytes that the body of a request may have. */
  readonly bodyLimit: number
  readonly whole: Answer
  readonly stream: Answer
  /** Begins the call of a request, for as long as it takes. */
  begin(request: { readonly headersDistinct: RequestHeaders }, reply: Reply): ChatCall
  /** Leaves the record of a call, which is over with it. */
  finish(call: ChatCall, ending: Ending): Promise<void>
  /** Ends what is under way; callers that still wait are told. */
  abandon(): void
  /** Ends what is under way, writes its records, and closes everything; no request may come after. */
  close(): Promise<void>
}

interface ChatOptions {
  readonly settings: Settings
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Registry
  /** Where the keys of providers are found. */
  readonly environment: NodeJS.ProcessEnv
  readonly limits: ChatLimits
}

const MEBIBYTE = 1024 * 1024

/**
 * Opens the chat service.
 * @throws {OperatorError} when the routing configuration or the registry file of apps is faulty.
 */
export async function openChat(options: ChatOptions): Promise<Chat> {
  const { settings, store, clock, log, metrics, environment, limits } = options
  const { DATA_DIR: dataDir } = settings
  const models = await openModels(settings.MODELS_FILE, environment, log)
  const attribution = await openAttribution({ dataDir, store, visibility: settings.NEW_APPS, clock, log })
  const usage = await openUsageLog(dataDir, { log, clock })
  const observer = createChatMetrics(metrics)
  watchUsageLog(metrics, usage)
  const upstream = createUpstream({ environment })
  const breakers = createBreakers(observer)
  const fallback = createFallback({ breakers, observer, log })
  const calls = createCallsUnderWay(limits)

  async function finish(call: ChatCall, ending: Ending): Promise<void> {
    const record = await call.finish(ending)
    calls.ended(call)
    if (record !== undefined) observer.requestFinished(record)
  }

  const tools = { upstream, fallback, finish, silenceMs: limits.silenceMs }
  return {
    models: withBreakers(models, breakers),
    bodyLimit: settings.CHAT_BODY_MIB * MEBIBYTE,
    whole: createWholeAnswer(tools),
    stream: createStreamAnswer(tools),
    begin({ headersDistinct }, reply) {
      const { requestId, caller } = reply.locals
      const appId = attribution.attribute(headersDistinct)
      const call = new ChatCall(
        { requestId, accountId: caller?.accountId ?? '', arrivedAt: clock(), appId },
        usage.record,
      )
      calls.began(call, reply)
      return call
    },
    finish,
    abandon: () => calls.abandon(),
    async close() {
      await calls.close()
      await upstream.close()
      await attribution.close()
      await usage.close()
    },
  }
}

/** The models, whose breakers go with them when they are read again. */
function withBreakers(models: Models, breakers: Breakers): Models {
  return {
    current: () => models.current(),
    async reload() {
      await models.reload()
      const configuration = models.current()
      if (configuration !== undefined) breakers.keepOnly(candidatesIn(configuration))
    },
  }
}
