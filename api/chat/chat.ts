/** The chat service: what answers requests, kept open while the API runs. */
import type { Registry } from 'prom-client'
import { UNATTRIBUTED_APP_ID } from '../../pipeline/contract/dataset.ts'
import type { Reply, Clock } from '../http/call.ts'
import type { Settings } from '../config.ts'
import type { Log } from '../process/log.ts'
import type { Store } from '../store/store.ts'
import { createStreamAnswer, createWholeAnswer, type Answer } from './answer.ts'
import type { RequestHeaders } from './apps/app-claim.ts'
import { openAttribution, type KnownApp } from './apps/attribution.ts'
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

/** Names the app that a request was counted for (CONTRACT 6). */
const APP_HEADER = 'X-App-Id'
/** By which a caller asks to be told of the attempts, and of the app. */
const METADATA_HEADER = 'x-router-metadata'

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
      const facts = { requestId, accountId: caller?.accountId ?? '', arrivedAt: clock() }
      const appId = attribution.attribute(headersDistinct)
      const onAttributed = (app: number) => nameApp(reply, app)
      const call = new ChatCall({ ...facts, appId, onAttributed }, usage.record)
      const describeApp = () => attribution.describe(headersDistinct)
      describeAppInReply(reply, {
        call,
        describeApp,
        isAsked: headersDistinct[METADATA_HEADER]?.[0] === 'enabled',
      })
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

function nameApp(reply: Reply, appId: number): void {
  if (!reply.headersSent) reply.set(APP_HEADER, String(appId))
}

interface DescribedApp {
  readonly call: ChatCall
  readonly describeApp: () => KnownApp
  /** Whether the caller asks for router metadata. */
  readonly isAsked: boolean
}

/** Says what is known of the app by now: a comment may take the head of a stream before a provider serves. */
function describeAppInReply(reply: Reply, { call, describeApp, isAsked }: DescribedApp): void {
  const { app_id: known } = describeApp()
  if (known !== undefined) nameApp(reply, known)
  if (!isAsked) return
  reply.locals.routerMetadata = () => ({
    attempts: call.attempts,
    app: { app_id: UNATTRIBUTED_APP_ID, ...describeApp() },
  })
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
