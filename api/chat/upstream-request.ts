/** Builds the request to a provider from the caller's request. */
import { isObject, type JsonObject } from '../untrusted/json.ts'
import type { Candidate } from './candidates.ts'
import type { ReplyIdentity } from './completion.ts'
import type { Provider } from './configuration.ts'
import type { ChatRequest } from './request.ts'

/** What an attempt sends, and what it has to know about the reply. */
export interface ProviderRequest {
  /** JSON text. */
  readonly body: string
  readonly identity: ReplyIdentity
  /** The requested number of choices. */
  readonly choices: number
  /** Whether no other model is left, so that an answer held back by a filter is the answer. */
  readonly isLastModel: boolean
}

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
export function providerBody({ body, stream }: ChatRequest, provider: Provider): JsonObject {
  const passedOn: Record<string, unknown> = { ...body }
  for (const field of [...NOT_PASSED_ON, ...provider.drop]) delete passedOn[field]
  const sent = { ...passedOn, model: provider.model, stream }
  const options = streamOptions(body['stream_options'], provider.include_usage)
  return stream && options !== undefined ? { ...sent, stream_options: options } : sent
}

function streamOptions(sent: unknown, includeUsage: boolean): JsonObject | undefined {
  const { include_usage: _include, ...others } = isObject(sent) ? sent : {}
  if (includeUsage) return { ...others, include_usage: true }
  return Object.keys(others).length === 0 ? undefined : others
}

/** The identity of a reply before its provider gives one. */
export function identityFor(
  { requestId, arrivedAt }: { readonly requestId: string; readonly arrivedAt: Date },
  { model, provider }: Pick<Candidate, 'model'> & { readonly provider: Pick<Provider, 'name'> },
): ReplyIdentity {
  return {
    id: `gen-${requestId}`,
    created: Math.floor(arrivedAt.getTime() / 1000),
    model,
    provider: provider.name,
  }
}
