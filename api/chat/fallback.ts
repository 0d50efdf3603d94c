/**
 * Which providers are tried for a request, in which order, and the error if none serves it. A provider that fails is
 * tried after the others of its model, but never left out: a request is served even when all are failing.
 */
import { ApiError } from '../http/errors.ts'
import { MODELS_PATH } from '../paths.ts'
import { shorten } from '../untrusted/json.ts'
import type { AttemptRecord } from './call.ts'
import type { Configuration, Provider } from './configuration.ts'
import type { AttemptFailure, ErrorType } from './failures.ts'
import { invalidRequest, type ChatRequest, type Preferences } from './request.ts'

/** Retry-After in seconds when an operator has to act first. */
const OPERATOR_SECONDS = 60
/** Delays clients that retry by themselves, some for an hour. */
const RETRY_AFTER_SECONDS = 5

/** What is tried for a request, in this order, and the maximum time of all attempts in milliseconds. */
export type Routing = ReturnType<typeof candidatesFor>

/**
 * The providers of the requested models, model after model. Models that are not configured are skipped.
 * @throws ApiError 400 if no model is configured or the preferences exclude every provider, 503 without an available
 *   provider.
 */
export function candidatesFor(
  { models: names, fields, preferences }: ChatRequest,
  configuration: Configuration | undefined,
) {
  if (configuration === undefined)
    throw unavailable('No models are configured: set MODELS_FILE to a routing configuration and start again')
  const { models, limits } = configuration
  const { length: sent } = Array.isArray(fields['models']) ? fields['models'] : []
  if (sent > limits.models_per_request)
    throw invalidRequest(`models: ${sent} were sent, at most ${limits.models_per_request} are allowed`)
  const known = names.filter((name) => models.has(name))
  if (known.length === 0) {
    const unknown = names.map((name) => `"${shorten(name)}"`).join(', ')
    throw invalidRequest(`Unknown model: ${unknown}; ${MODELS_PATH} lists the models`)
  }
  const available = known.map((model) => models.get(model)?.providers ?? [])
  const all = available.flat()
  if (all.length === 0)
    throw unavailable('No provider of the model is available: the operator has to set their keys')
  const candidates = available.flatMap((providers) => preferred(providers, preferences))
  if (candidates.length > 0) return { candidates, totalMs: limits.total_ms }
  const left = [...new Set(all.map(({ name }) => name))].join(', ')
  throw invalidRequest(`provider: its preferences exclude every provider of the model; available: ${left}`)
}

/** The providers of one model by the caller's preferences, then those with an open breaker last. */
function preferred(
  providers: readonly Provider[],
  { order, only, ignore, allow_fallbacks: allowsFallbacks }: Preferences,
): readonly Provider[] {
  const allowed = providers.filter((one) => (!only?.length || isIn(only, one)) && !isIn(ignore, one))
  const first = [...new Set((order ?? []).flatMap((name) => allowed.filter((one) => isIn([name], one))))]
  const rest = allowed.filter((one) => !first.includes(one))
  if (allowsFallbacks === false) return order?.length ? first : rest.slice(0, 1)
  const now = performance.now()
  const isOpen = ({ health: { openUntil = 0 } }: Provider) => now < openUntil
  return [...first, ...rest].toSorted((a, b) => Number(isOpen(a)) - Number(isOpen(b)))
}

function isIn(names: readonly string[] | null | undefined, { name }: Provider): boolean {
  return names?.some((one) => one.toLowerCase() === name.toLowerCase()) === true
}

function unavailable(message: string): ApiError {
  return new ApiError(503, message, {
    metadata: { error_type: 'provider_unavailable' },
    headers: { 'Retry-After': String(OPERATOR_SECONDS) },
  })
}

/** The circuit breaker of a provider opens after so many failures in a row, or when half of its last attempts failed. */
const IN_A_ROW = 3
const REMEMBERED = 10
/** How long it stays open by default, and at most if the provider names a time, in milliseconds. */
const OPEN_MS = 30_000
const OPEN_MS_AT_MOST = 300_000

/** An attempt begins: if it probes an open breaker, other requests try the provider last meanwhile. */
export function noteBegin({ health }: Provider): void {
  const now = performance.now()
  if (health.openUntil !== undefined && now >= health.openUntil) health.openUntil = now + OPEN_MS
}

/** The provider serves: its first token arrived. */
export function noteSuccess({ health }: Provider): void {
  health.openUntil = undefined
  health.failures = [...health.failures, false].slice(-REMEMBERED)
}

/** An attempt failed; `retryAfterSeconds` is the provider's own value, 0 if it may be tried at once. */
export function noteFailure({ health }: Provider, retryAfterSeconds = 0): void {
  const failures = [...health.failures, true].slice(-REMEMBERED)
  const hasFailedInARow = failures.length >= IN_A_ROW && !failures.slice(-IN_A_ROW).includes(false)
  const isFailing = hasFailedInARow || failures.filter(Boolean).length >= REMEMBERED / 2
  health.failures = failures
  if (!isFailing && health.openUntil === undefined && retryAfterSeconds === 0) return
  const ms = Math.min(retryAfterSeconds * 1000, OPEN_MS_AT_MOST) || OPEN_MS
  health.openUntil = Math.max(health.openUntil ?? 0, performance.now() + ms)
  health.failures = []
}

/** The most useful error for the caller comes first: agents shorten their context and retry. */
const REFUSALS: readonly ErrorType[] = [
  'context_length_exceeded',
  'payload_too_large',
  'content_policy_violation',
  'invalid_request',
]

const NO_TIME =
  'No provider was tried: the request took longer than its time limit to arrive; ' +
  'send it faster, or ask the operator to raise limits.total_ms of the routing configuration'

/** The error for attempts with these failures (CONTRACT 6). Providers' own 401, 402 and bodies are never passed on. */
export function notServed(attempts: readonly AttemptRecord[], failures: readonly AttemptFailure[]): ApiError {
  const { status, facts, headers } = errorBehind(failures)
  const tried = attempts.map(({ provider, model }, at) => `${provider} (${model}) ${failures[at]?.message}`)
  const message = `No provider served the request: ${tried.join('; ')}`
  const metadata = {
    ...facts,
    provider_name: attempts.at(-1)?.provider ?? null,
    previous_errors: attempts.map(({ model, provider, status: code, error_type }) => {
      return { model, provider_name: provider, code, error_type }
    }),
  }
  return new ApiError(status, attempts.length === 0 ? NO_TIME : message, { metadata, headers })
}

/**
 * 400 if each provider rejected the request itself, 429 if all were rate-limited, 408 if all timed out or no time was
 * left, otherwise 502. OpenAI's clients read X-Should-Retry to decide whether to resend a request.
 */
function errorBehind(failures: readonly AttemptFailure[]) {
  const are = (type: ErrorType) => failures.every(({ errorType }) => errorType === type)
  if (are('timeout')) return { status: 408, facts: { error_type: 'timeout' }, headers: {} }
  const final = { 'X-Should-Retry': 'false' }
  if (failures.every(({ rule }) => rule.refusesRequest)) {
    const [first] = REFUSALS.flatMap((type) => failures.filter(({ errorType }) => errorType === type))
    const facts = { error_type: first?.errorType, param: first?.facts.param, code: first?.facts.code }
    return { status: 400, facts, headers: final }
  }
  if (are('rate_limit_exceeded')) {
    const delays = failures.map(({ facts }) => facts.retryAfterSeconds).filter((one) => one !== undefined)
    const seconds = delays.length > 0 ? Math.max(1, Math.min(...delays)) : RETRY_AFTER_SECONDS
    const headers = { 'Retry-After': String(seconds) }
    return { status: 429, facts: { error_type: 'rate_limit_exceeded' }, headers }
  }
  const later = { 'Retry-After': String(RETRY_AFTER_SECONDS) }
  const headers = failures.every(({ kind }) => kind === 'quota') ? final : later
  return { status: 502, facts: { error_type: are('server') ? 'server' : 'provider_unavailable' }, headers }
}
