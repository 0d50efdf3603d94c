/** Builds the request to a provider from the caller's request. */
import { isObject } from '../untrusted/json.ts'
import type { ReplyIdentity } from './completion.ts'
import type { Provider } from './configuration.ts'
import type { ChatRequest } from './request.ts'

/** Fields for a router, or fields that are written anew: some providers reject unknown fields. */
const NOT_PASSED_ON = 'models route provider plugins transforms session_id usage stream_options'.split(' ')

/** The body for one provider as JSON text: its model name, no router fields, and a stream's usage requested. */
export function providerBody({ body, stream }: ChatRequest, provider: Provider): string {
  const passedOn: Record<string, unknown> = { ...body }
  for (const field of [...NOT_PASSED_ON, ...provider.drop]) delete passedOn[field]
  const { include_usage: _include, ...options } = isObject(body['stream_options'])
    ? body['stream_options']
    : {}
  if (provider.include_usage) Object.assign(options, { include_usage: true })
  if (stream && Object.keys(options).length > 0) passedOn['stream_options'] = options
  return JSON.stringify({ ...passedOn, model: provider.model, stream })
}

/** The identity of a reply before its provider gives one. */
export function identityFor(
  { requestId, arrivedAt }: { readonly requestId: string; readonly arrivedAt: Date },
  { model, provider }: { readonly model: string; readonly provider: Pick<Provider, 'name'> },
): ReplyIdentity {
  const created = Math.floor(arrivedAt.getTime() / 1000)
  return { id: `gen-${requestId}`, created, model, provider: provider.name }
}
