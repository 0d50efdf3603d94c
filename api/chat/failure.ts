/** Why a provider did not serve a request, and the consequences. */

/** Stable names of failures, for clients and records; the SDKs know these words. */
export type ErrorType =
  | 'content_policy_violation'
  | 'context_length_exceeded'
  | 'invalid_request'
  | 'payload_too_large'
  | 'provider_overloaded'
  | 'provider_unavailable'
  | 'rate_limit_exceeded'
  | 'server'
  | 'timeout'

interface FailureRule {
  readonly errorType: ErrorType
  /** Follows the name of the provider. */
  readonly sentence: string
  /** Whether the provider rejects the request itself: 400 if every provider does. */
  readonly refusesRequest?: true
  /** Whether the failure shows nothing about the provider's health. */
  readonly harmless?: true
}

/** A rejected request says nothing about the provider's health. */
const refusal = (errorType: ErrorType, sentence: string) =>
  ({ errorType, sentence: `refused the request: ${sentence}`, refusesRequest: true, harmless: true }) as const

const OPERATOR_FAULT = {
  errorType: 'provider_unavailable',
  sentence: 'did not accept the request of this service',
} as const

const RULES = {
  connection: { errorType: 'provider_unavailable', sentence: 'could not be reached' },
  timeout: { errorType: 'timeout', sentence: 'did not answer in time' },
  rateLimited: { errorType: 'rate_limit_exceeded', sentence: 'takes no more requests for now' },
  overloaded: { errorType: 'provider_overloaded', sentence: 'is overloaded' },
  failed: { errorType: 'provider_unavailable', sentence: 'failed' },
  // The provider rejects this service's key, credit or model name: never the caller's fault.
  operator: OPERATOR_FAULT,
  // Not a rate limit: waiting does not restore the quota.
  quota: OPERATOR_FAULT,
  invalidReply: { errorType: 'provider_unavailable', sentence: 'sent a reply that cannot be used' },
  cut: { errorType: 'provider_unavailable', sentence: 'ended its reply before it was whole' },
  malformed: refusal('invalid_request', 'it does not accept or support a part of it'),
  // Agents look for these words in the message, and shorten their context.
  tooLong: refusal(
    'context_length_exceeded',
    'the prompt is too long, it exceeds the maximum context length (context_length_exceeded)',
  ),
  tooLarge: refusal('payload_too_large', 'its body is too large'),
  filtered: refusal('content_policy_violation', 'its content is not allowed'),
  outOfTime: {
    errorType: 'timeout',
    sentence: 'did not answer in the time that the request had left',
    harmless: true,
  },
  // Found once the reply has begun: no other provider is tried.
  notRead: {
    errorType: 'timeout',
    sentence: 'was cut off, since the caller did not read its reply',
    harmless: true,
  },
  // The client disconnected, or the service stops.
  cancelled: { errorType: 'server', sentence: 'was cancelled', harmless: true },
} as const satisfies Readonly<Record<string, FailureRule>>

export type FailureKind = keyof typeof RULES

interface FailureFacts {
  /** HTTP status of the provider, if there is one. */
  readonly status?: number | undefined
  /** The provider's Retry-After in seconds. */
  readonly retryAfterSeconds?: number | undefined
  /** The provider's word for it. */
  readonly code?: string | undefined
  /** The member of the request that the provider rejects. */
  readonly param?: string | undefined
  /** The provider's message for the log. */
  readonly detail?: string | undefined
  readonly cause?: unknown
}

/** One provider did not serve the request. The message holds no secret and no text of the provider. */
export class AttemptFailure extends Error {
  override readonly name = 'AttemptFailure'
  readonly kind: FailureKind
  readonly facts: FailureFacts

  constructor(kind: FailureKind, facts: FailureFacts = {}) {
    super(RULES[kind].sentence, { cause: facts.cause })
    this.kind = kind
    this.facts = facts
  }

  get rule(): FailureRule {
    return RULES[this.kind]
  }

  get errorType(): ErrorType {
    return this.rule.errorType
  }
}
