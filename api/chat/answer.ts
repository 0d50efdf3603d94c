/** Answers a valid chat request, whole or as a stream, and writes its usage record before the last byte. */
import type { Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import { sendBody } from '../http/respond.ts'
import { isObject, type JsonObject } from '../untrusted/json.ts'
import type { Attempt } from './attempt.ts'
import { STATUS_DISCONNECTED, type ChatCall, type Ending } from './call.ts'
import { failedChunk, silentChunk } from './chunks.ts'
import { openClientStream, type ClientStream } from './client-stream.ts'
import type { ReplyIdentity } from './completion.ts'
import type { AttemptFailure } from './failure.ts'
import type { Fallback, RoutedCall } from './fallback.ts'
import type { ProviderClient } from './provider.ts'
import { openStream, relay } from './relay.ts'
import type { ChatRequest } from './request.ts'
import { identityFor, providerBody, type ProviderRequest } from './upstream-request.ts'
import { complete } from './whole.ts'

interface AnswerOptions {
  readonly client: ProviderClient
  readonly fallback: Fallback
  /** Writes the usage record of a request. */
  readonly finish: (call: ChatCall, ending: Ending) => Promise<void>
  /** Milliseconds of silence after which a waiting client gets a chunk without content. */
  readonly silenceMs: number
}

/** Answers a request from its candidates. */
export type Answer = (routed: RoutedCall, request: ChatRequest, reply: Reply) => Promise<void>

export function createAnswers(options: AnswerOptions): { readonly whole: Answer; readonly stream: Answer } {
  return { whole: createWholeAnswer(options), stream: createStreamAnswer(options) }
}

function createWholeAnswer({ client, fallback, finish }: AnswerOptions): Answer {
  return async (routed, request, reply) => {
    const { call } = routed
    const [attempt, completion] = await fallback.firstServing(routed, (one, isLastModel) =>
      complete(client, one, providerRequest(call, request, { attempt: one, isLastModel })),
    )
    fallback.ended(call, attempt)
    await finish(call, {
      ...(call.isDisconnected
        ? { outcome: 'left', status: STATUS_DISCONNECTED }
        : { outcome: 'completed', status: 200 }),
      served: attempt.candidate,
      usage: completion.usage,
    })
    // Its numbers are plain: no bigint has to be looked for in a reply of megabytes.
    const body = JSON.stringify({ ...completion.body, ...routerMetadata(reply) })
    sendBody(reply, 200, 'application/json; charset=utf-8', body)
  }
}

function createStreamAnswer({ client, fallback, finish, silenceMs }: AnswerOptions): Answer {
  async function open(routed: RoutedCall, request: ChatRequest, stream: ClientStream) {
    const { call } = routed
    try {
      return await fallback.firstServing(routed, (one, isLastModel) =>
        openStream(client, one, providerRequest(call, request, { attempt: one, isLastModel })),
      )
    } catch (error) {
      stream.stop()
      // As long as nothing was sent, the error can have its own status.
      if (!stream.hasBegun() || !(error instanceof ApiError)) throw error
      await finish(call, { outcome: call.isDisconnected ? 'left' : 'failed', status: 200 })
      stream.fail(failedChunk(unservedIdentity(call, request), lateError(error)))
      return undefined
    }
  }

  return async (routed, request, reply) => {
    const { call } = routed
    let identity = unservedIdentity(call, request)
    const stream = openClientStream(reply, { silenceMs, silentChunk: () => silentChunk(identity) })
    const opened = await open(routed, request, stream)
    if (opened === undefined) return
    const [attempt, { reader }] = opened
    call.reachedFirstToken()
    const { model, provider } = identityFor(call, attempt.candidate)
    // A chunk in silence was sent before any provider gave the reply an id.
    identity = reader.fixIdentity(stream.hasBegun() ? { ...identity, model, provider } : undefined)
    const failure = await relay(opened[1], attempt, stream)
    fallback.ended(call, attempt, failure)
    const status = stream.hasBegun() ? 200 : STATUS_DISCONNECTED
    const outcome = call.isDisconnected ? 'left' : failure === undefined ? 'completed' : 'cut'
    await finish(call, { outcome, status, served: attempt.candidate, usage: reader.usage, failure })
    if (failure !== undefined) return stream.fail(failedChunk(identity, cutError(attempt, failure)))
    const last = reader.ending(wantsUsageChunk(request)).map((chunk) => reader.identified(chunk))
    stream.end([...last.slice(0, -1), { ...last.at(-1), ...routerMetadata(reply) }])
  }
}

function providerRequest(
  call: ChatCall,
  request: ChatRequest,
  { attempt, isLastModel }: { readonly attempt: Attempt; readonly isLastModel: boolean },
): ProviderRequest {
  const { candidate } = attempt
  const { n } = request.body
  return {
    body: JSON.stringify(providerBody(request, candidate.provider)),
    identity: identityFor(call, candidate),
    choices: typeof n === 'number' ? n : 1,
    isLastModel,
  }
}

/** The attempts, if the caller requests them. */
function routerMetadata(reply: Reply): JsonObject {
  const metadata = reply.locals.routerMetadata?.()
  return metadata === undefined ? {} : { router_metadata: metadata }
}

/** As OpenAI's API: usage in a chunk of its own only on request. */
function wantsUsageChunk({ body: { stream_options: options } }: ChatRequest): boolean {
  return isObject(options) && options['include_usage'] === true
}

function unservedIdentity(call: ChatCall, { models: [model = ''] }: ChatRequest): ReplyIdentity {
  return identityFor(call, { model, provider: { name: 'none' } })
}

function lateError({ status, message, metadata }: ApiError): JsonObject {
  return { code: status, message, ...(metadata && { metadata }) }
}

function cutError({ candidate }: Attempt, failure: AttemptFailure): JsonObject {
  return {
    code: failure.errorType === 'timeout' ? 408 : 502,
    message: `${candidate.provider.name} (${candidate.model}) ${failure.message}`,
    metadata: { error_type: failure.errorType, provider_name: candidate.provider.name },
  }
}
