/** The chat service: its resources, open while the API runs. */
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

/** Limits of one request. */
export interface ChatLimits extends CallLimits {
  /** Milliseconds of silence after which a waiting client gets a comment. */
  readonly silenceMs: number
}

/** The default limits. */
export const CHAT_LIMITS: ChatLimits = { silenceMs: 15_000, drainMs: 30_000, drains: 200, stopMs: 5000 }

export interface Chat {
  readonly models: Models
  /** Maximum bytes of a request body. */
  readonly bodyLimit: number
  readonly whole: Answer
  readonly stream: Answer
  /** Begins the call of a request. */
  begin(request: { readonly headersDistinct: RequestHeaders }, reply: Reply): ChatCall
  /** Writes the usage record of a call and ends it. */
  finish(call: ChatCall, ending: Ending): Promise<void>
  /** Ends calls in progress; callers that wait receive an error. */
  abandon(): void
  /** Ends calls in progress, writes their records, and closes everything. No request may follow. */
  close(): Promise<void>
}

interface ChatOptions {
  readonly settings: Settings
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Registry
  /** Holds the providers' keys. */
  readonly environment: NodeJS.ProcessEnv
  readonly limits: ChatLimits
}

const MEBIBYTE = 1024 * 1024

/** The response header with the app that a request counts for (CONTRACT 6). */
const APP_HEADER = 'X-App-Id'
/** The request header that enables attempts and app in the response. */
const METADATA_HEADER = 'x-router-metadata'

/**
 * Opens the chat service.
 * @throws {OperatorError} if the routing configuration or the registry file of apps is invalid.
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
        isRequested: headersDistinct[METADATA_HEADER]?.[0] === 'enabled',
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
  /** Whether the caller requests router metadata. */
  readonly isRequested: boolean
}

/** Adds the known facts of the app: a comment may send a stream's head before a provider serves. */
function describeAppInReply(reply: Reply, { call, describeApp, isRequested }: DescribedApp): void {
  const { app_id: known } = describeApp()
  if (known !== undefined) nameApp(reply, known)
  if (!isRequested) return
  reply.locals.routerMetadata = () => ({
    attempts: call.attempts,
    app: { app_id: UNATTRIBUTED_APP_ID, ...describeApp() },
  })
}

/** The models; a reload also drops the breakers of removed ones. */
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
