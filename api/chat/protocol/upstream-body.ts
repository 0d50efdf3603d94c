/** Builds the request to a provider from the caller's request. */
import { isObject, type JsonObject } from '../../untrusted/json.ts'
import type { ChatCall } from '../chat-call.ts'
import type { Target } from '../routing/candidates.ts'
import type { Answerer } from './completion.ts'
import type { Candidate } from '../observer.ts'
import type { ChatRequest } from './request.ts'

/** Fields for a router, or fields that are written anew: some providers reject unknown fields. */
const NOT_PASSED_ON = [
  'models',
  'route',
  'provider',
  'plugins',
  'transforms',
  'session_id',
  'usage',
  'stream_options',
]

/** The body for one provider: its model name, no router fields, and a stream's usage requested. */
export function upstreamBody({ body, stream }: ChatRequest, { upstream }: Target): JsonObject {
  const passedOn: Record<string, unknown> = { ...body }
  for (const field of [...NOT_PASSED_ON, ...upstream.drop]) delete passedOn[field]
  const sent = { ...passedOn, model: upstream.model, stream }
  const options = streamOptions(body['stream_options'], upstream.includeUsage)
  return stream && options !== undefined ? { ...sent, stream_options: options } : sent
}

function streamOptions(sent: unknown, includeUsage: boolean): JsonObject | undefined {
  const { include_usage: _include, ...others } = isObject(sent) ? sent : {}
  if (includeUsage) return { ...others, include_usage: true }
  return Object.keys(others).length === 0 ? undefined : others
}

/** The model and provider, as the reply names them. */
export function answererOf(call: ChatCall, { model, provider }: Candidate): Answerer {
  return {
    model,
    provider,
    fallbackId: `gen-${call.requestId}`,
    created: Math.floor(call.arrivedAt.getTime() / 1000),
  }
}
