/** Which providers may answer a request, in the order in which they are asked. */
import { ApiError } from '../../http/errors.ts'
import { MODELS_PATH } from '../../paths.ts'
import { shorten } from '../../untrusted/shorten.ts'
import type { Configuration, Provider } from './configuration.ts'
import type { Candidate } from '../observer.ts'
import { invalidRequest, type ChatRequest } from '../protocol/request.ts'

/** A candidate with the way to it. */
export interface Target extends Candidate {
  readonly upstream: Provider
}

/** Seconds after which it makes sense to ask again where the operator has to do something first. */
const OPERATOR_SECONDS = 60

/** All that can be asked. */
export function candidatesIn({ models }: Configuration): readonly Candidate[] {
  return [...models].flatMap(([model, providers]) => providers.map(({ name }) => ({ model, provider: name })))
}

/**
 * The providers of the models that were asked for: model after model, each in the order of the configuration.
 * @throws {ApiError} 400 for a model that is not configured, 503 when there is nothing to ask.
 */
export function candidatesFor(
  request: ChatRequest,
  configuration: Configuration | undefined,
): readonly Target[] {
  if (configuration === undefined) {
    throw unavailable('No models are configured: set MODELS_FILE to a routing configuration and start again')
  }
  const { models, modelsPerRequest } = configuration
  const fallbacks = request.body['models']
  if (Array.isArray(fallbacks) && fallbacks.length > modelsPerRequest) {
    throw invalidRequest(`models: ${fallbacks.length} were sent, at most ${modelsPerRequest} are allowed`)
  }
  const unknown = request.models.filter((model) => !models.has(model))
  if (unknown.length > 0) {
    const names = unknown.map((model) => `"${shorten(model)}"`).join(', ')
    throw invalidRequest(`Unknown model: ${names}; ${MODELS_PATH} lists those there are`)
  }
  const targets = request.models.flatMap((model) =>
    (models.get(model) ?? []).map((upstream) => ({ model, provider: upstream.name, upstream })),
  )
  if (targets.length === 0) {
    throw unavailable('No provider of the model can be asked: the operator has to set their keys')
  }
  return targets
}

function unavailable(message: string): ApiError {
  return new ApiError(503, message, {
    metadata: { error_type: 'provider_unavailable' },
    headers: { 'Retry-After': String(OPERATOR_SECONDS) },
  })
}
