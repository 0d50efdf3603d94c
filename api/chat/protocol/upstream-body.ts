/** What a provider is asked: the caller's request, with what is ours to decide. */
import { isObject, type JsonObject } from '../../untrusted/json.ts'
import type { ChatCall } from '../chat-call.ts'
import type { Target } from '../routing/candidates.ts'
import type { Answerer } from './completion.ts'
import type { Candidate } from '../observer.ts'
import type { ChatRequest } from './request.ts'

/** The body for one provider: its name for the model, no fallbacks, and a stream's usage asked for. */
export function upstreamBody({ body, stream }: ChatRequest, { upstream }: Target): JsonObject {
  const { models: _models, stream_options: options, ...rest } = body
  const asked = { ...rest, model: upstream.model, stream }
  if (!stream) return asked
  const { include_usage: _include, ...others } = isObject(options) ? options : {}
  if (upstream.includeUsage) return { ...asked, stream_options: { ...others, include_usage: true } }
  return Object.keys(others).length === 0 ? asked : { ...asked, stream_options: others }
}

/** Who answers, as the reply names it. */
export function answererOf(call: ChatCall, { model, provider }: Candidate): Answerer {
  return {
    model,
    provider,
    fallbackId: `gen-${call.requestId}`,
    created: Math.floor(call.arrivedAt.getTime() / 1000),
  }
}
