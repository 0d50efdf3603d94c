/** The providers for a request, in the order to try them: by model, preferences, configuration and breakers. */
import { ApiError } from '../http/errors.ts'
import { MODELS_PATH } from '../paths.ts'
import { shorten } from '../untrusted/shorten.ts'
import type { Configuration, Provider } from './configuration.ts'
import { invalidRequest, type ChatRequest, type Preferences } from './request.ts'

/** A model, by its name in the configuration, and one of its providers. */
export interface Candidate {
  readonly model: string
  readonly provider: Provider
}

/** Retry-After in seconds when an operator has to act first. */
const OPERATOR_SECONDS = 60

/**
 * The providers of the requested models, model after model. Models that are not configured are skipped.
 * @throws {ApiError} 400 if no model is configured or the preferences exclude every provider, 503 without an available
 *   provider.
 */
export function candidatesFor(
  { models: names, fallbacks, preferences }: ChatRequest,
  configuration: Configuration | undefined,
): readonly Candidate[] {
  if (configuration === undefined) {
    throw unavailable('No models are configured: set MODELS_FILE to a routing configuration and start again')
  }
  const { models, limits } = configuration
  if (fallbacks > limits.models_per_request) {
    throw invalidRequest(`models: ${fallbacks} were sent, at most ${limits.models_per_request} are allowed`)
  }
  const known = names.filter((name) => models.has(name))
  if (known.length === 0) {
    const unknown = names.map((name) => `"${shorten(name)}"`).join(', ')
    throw invalidRequest(`Unknown model: ${unknown}; ${MODELS_PATH} lists the models`)
  }
  const available = known.map((model) => [model, models.get(model) ?? []] as const)
  const all = available.flatMap(([, providers]) => providers)
  if (all.length === 0) {
    throw unavailable('No provider of the model is available: the operator has to set their keys')
  }
  const candidates = available.flatMap(([model, providers]) =>
    preferred(providers, preferences).map((provider) => ({ model, provider })),
  )
  if (candidates.length > 0) return candidates
  const left = [...new Set(all.map(({ name }) => name))].join(', ')
  throw invalidRequest(`provider: its preferences exclude every provider of the model; available: ${left}`)
}

/** The providers of one model by the caller's preferences, then those with an open breaker last. */
function preferred(
  providers: readonly Provider[],
  { order, only, ignore, allow_fallbacks: allowsFallbacks }: Preferences,
): readonly Provider[] {
  const allowed = providers.filter(({ name }) => {
    const isNamed = (list: readonly string[]) => list.includes(name.toLowerCase())
    return (only === undefined || isNamed(only)) && (ignore === undefined || !isNamed(ignore))
  })
  const first = (order ?? []).flatMap((name) => allowed.filter((one) => one.name.toLowerCase() === name))
  const rest = allowed.filter((one) => !first.includes(one))
  if (!allowsFallbacks) return order === undefined ? rest.slice(0, 1) : first
  const wanted = [...first, ...rest]
  const now = performance.now()
  const last = wanted.filter(({ breaker }) => breaker.isLast(now))
  return last.length === 0 ? wanted : [...wanted.filter((one) => !last.includes(one)), ...last]
}

function unavailable(message: string): ApiError {
  return new ApiError(503, message, {
    metadata: { error_type: 'provider_unavailable' },
    headers: { 'Retry-After': String(OPERATOR_SECONDS) },
  })
}
