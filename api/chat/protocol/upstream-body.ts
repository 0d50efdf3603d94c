/** What a provider is asked: the caller's request, with what is ours to decide. */
import { isObject, type JsonObject } from '../../untrusted/json.ts'
import type { ChatCall } from '../chat-call.ts'
import type { Target } from '../routing/candidates.ts'
import type { Answerer } from './completion.ts'
import type { Candidate } from '../observer.ts'
import type { ChatRequest } from './request.ts'

/** Fields that are meant for a router, or that are made anew: some providers refuse what they do not know. */
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

/** The body for one provider: its name for the model, no fields of a router, and a stream's usage asked for. */
export function upstreamBody({ body, stream }: ChatRequest, { upstream }: Target): JsonObject {
  const passedOn: Record<string, unknown> = { ...body }
  for (const field of [...NOT_PASSED_ON, ...upstream.drop]) delete passedOn[field]
  const asked = { ...passedOn, model: upstream.model, stream }
  const options = streamOptions(body['stream_options'], upstream.includeUsage)
  return stream && options !== undefined ? { ...asked, stream_options: options } : asked
}

function streamOptions(sent: unknown, includeUsage: boolean): JsonObject | undefined {
  const { include_usage: _include, ...others } = isObject(sent) ? sent : {}
  if (includeUsage) return { ...others, include_usage: true }
  return Object.keys(others).length === 0 ? undefined : others
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
