/** Answers a valid chat request, whole or as a stream, and writes its usage record before the last byte. */
import type { Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import type { JsonObject } from '../untrusted/json.ts'
import { sendJson } from '../http/respond.ts'
import type { Attempt } from './routing/attempt.ts'
import { STATUS_LEFT, type ChatCall, type Ending } from './chat-call.ts'
import { failedChunk } from './protocol/chunks.ts'
import { openEventStream, type EventStream } from './protocol/event-stream.ts'
import type { AttemptFailure } from './routing/failure.ts'
import type { Fallback, Routed } from './routing/fallback.ts'
import type { Candidate } from './observer.ts'
import type { ChatRequest } from './protocol/request.ts'
import { openStream, relay } from './protocol/streamed.ts'
import { answererOf, upstreamBody } from './protocol/upstream-body.ts'
import { complete, type UpstreamRequest } from './protocol/whole.ts'
import type { Upstream } from './upstream/upstream.ts'

interface AnswerTools {
  readonly upstream: Upstream
  readonly fallback: Fallback
  /** Writes the usage record of a request. */
  readonly finish: (call: ChatCall, ending: Ending) => Promise<void>
  /** Milliseconds of silence after which a waiting client gets a comment. */
  readonly silenceMs: number
}

/** Answers a request from the providers in `routed`. */
export type Answer = (routed: Routed, request: ChatRequest, reply: Reply) => Promise<void>

export function createWholeAnswer({ upstream, fallback, finish }: AnswerTools): Answer {
  return async (routed, request, reply) => {
    const { call } = routed
    const [attempt, completion] = await fallback.firstServing(routed, (one, isLastModel) =>
      complete(upstream, one, upstreamRequest(call, request, one, isLastModel)),
    )
    fallback.ended(call, attempt)
    await finish(call, {
      ...(call.hasLeft ? { outcome: 'left', status: STATUS_LEFT } : { outcome: 'completed', status: 200 }),
      served: attempt.target,
      usage: completion.usage,
    })
    sendJson(reply, 200, { ...completion.body, ...routerMetadata(reply) })
  }
}

export function createStreamAnswer({ upstream, fallback, finish, silenceMs }: AnswerTools): Answer {
  async function open(routed: Routed, request: ChatRequest, client: EventStream) {
    const { call } = routed
    try {
      return await fallback.firstServing(routed, (one, isLastModel) =>
        openStream(upstream, one, upstreamRequest(call, request, one, isLastModel)),
      )
    } catch (error) {
      client.stop()
      // As long as nothing was sent, the error can have its own status.
      if (!client.hasBegun() || !(error instanceof ApiError)) throw error
      await finish(call, { outcome: call.hasLeft ? 'left' : 'failed', status: 200 })
      client.end(failedChunk(answererOf(call, unserved(request)), lateError(error)), false)
      return undefined
    }
  }

  return async (routed, request, reply) => {
    const { call } = routed
    // The response head names the app, and a comment sends the head.
    const client = openEventStream(reply, { silenceMs, beforeHead: () => call.attribute(true) })
    const opened = await open(routed, request, client)
    if (opened === undefined) return
    const [attempt, stream] = opened
    await call.reachedFirstToken()
    const failure = await relay(stream, attempt, client)
    fallback.ended(call, attempt, failure)
    const status = client.hasBegun() ? 200 : STATUS_LEFT
    const outcome = call.hasLeft ? 'left' : failure === undefined ? 'completed' : 'cut'
    await finish(call, { outcome, status, served: attempt.target, usage: stream.reader.usage, failure })
    if (failure === undefined) client.end({ ...stream.reader.last(), ...routerMetadata(reply) }, true)
    else client.end(stream.reader.failed(cutError(attempt, failure)), false)
  }
}

function upstreamRequest(
  call: ChatCall,
  request: ChatRequest,
  { target }: Attempt,
  isLastModel: boolean,
): UpstreamRequest {
  const { n } = request.body
  return {
    body: JSON.stringify(upstreamBody(request, target)),
    answerer: answererOf(call, target),
    choices: typeof n === 'number' ? n : 1,
    isLastModel,
  }
}

/** The attempts, if the caller requests them. */
function routerMetadata(reply: Reply): JsonObject {
  const metadata = reply.locals.routerMetadata?.()
  return metadata === undefined ? {} : { router_metadata: metadata }
}

function unserved({ models: [model = ''] }: ChatRequest): Candidate {
  return { model, provider: 'none' }
}

function lateError({ status, message, metadata }: ApiError): JsonObject {
  return { code: status, message, ...(metadata && { metadata }) }
}

function cutError({ target }: Attempt, failure: AttemptFailure): JsonObject {
  return {
    code: failure.errorType === 'timeout' ? 408 : 502,
    message: `${target.provider} (${target.model}) ${failure.message}`,
    metadata: { error_type: failure.errorType, provider_name: target.provider },
  }
}
