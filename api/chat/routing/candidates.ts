/** The providers for a request, in the order of fallback. */
import { ApiError } from '../../http/errors.ts'
import { MODELS_PATH } from '../../paths.ts'
import { shorten } from '../../untrusted/shorten.ts'
import type { Configuration, Provider } from './configuration.ts'
import type { Candidate } from '../observer.ts'
import { invalidRequest, type ChatRequest } from '../protocol/request.ts'

/** A candidate with its provider. */
export interface Target extends Candidate {
  readonly upstream: Provider
}

/** Retry-After in seconds when an operator has to act first. */
const OPERATOR_SECONDS = 60

/** All configured candidates. */
export function candidatesIn({ models }: Configuration): readonly Candidate[] {
  return [...models].flatMap(([model, providers]) => providers.map(({ name }) => ({ model, provider: name })))
}

/**
 * The providers of the requested models: model after model, each in the order of the configuration.
 * @throws {ApiError} 400 for a model that is not configured, 503 without an available provider.
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
    throw invalidRequest(`Unknown model: ${names}; ${MODELS_PATH} lists the models`)
  }
  const targets = request.models.flatMap((model) =>
    (models.get(model) ?? []).map((upstream) => ({ model, provider: upstream.name, upstream })),
  )
  if (targets.length === 0) {
    throw unavailable('No provider of the model is available: the operator has to set their keys')
  }
  return targets
}

function unavailable(message: string): ApiError {
  return new ApiError(503, message, {
    metadata: { error_type: 'provider_unavailable' },
    headers: { 'Retry-After': String(OPERATOR_SECONDS) },
  })
}
