/** Why a provider did not serve a request, and the consequences. */

/** Stable names of failures, for clients and records; the SDKs know these words. */
export type ErrorType =
  | 'authentication'
  | 'content_policy_violation'
  | 'context_length_exceeded'
  | 'invalid_request'
  | 'not_found'
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
  /** Whether other providers of the model would fail alike, so that only another model can help. */
  readonly endsModel?: true
  /** Whether the failure shows nothing about the provider's health. */
  readonly harmless?: true
}

/** The provider rejects this service's key, account or model name: never the caller's fault. */
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
  denied: OPERATOR_FAULT,
  outOfCredit: OPERATOR_FAULT,
  // Not a rate limit: waiting does not restore the quota.
  quotaUsedUp: OPERATOR_FAULT,
  noSuchModel: OPERATOR_FAULT,
  invalidReply: { errorType: 'provider_unavailable', sentence: 'sent a reply that cannot be used' },
  cut: { errorType: 'provider_unavailable', sentence: 'ended its reply before it was whole' },
  refused: {
    errorType: 'invalid_request',
    sentence: 'refused the request',
    refusesRequest: true,
    endsModel: true,
    harmless: true,
  },
  // Hosts of one model differ in what they support and how long a request may be.
  unsupported: {
    errorType: 'invalid_request',
    sentence: 'refused the request: it does not support a part of it',
    refusesRequest: true,
    harmless: true,
  },
  tooLong: {
    errorType: 'context_length_exceeded',
    sentence: 'refused the request: it exceeds the maximum context length',
    refusesRequest: true,
    harmless: true,
  },
  tooLarge: {
    errorType: 'payload_too_large',
    sentence: 'refused the request: its body is too large',
    refusesRequest: true,
    harmless: true,
  },
  filtered: {
    errorType: 'content_policy_violation',
    sentence: 'refused the content of the request',
    refusesRequest: true,
    endsModel: true,
    harmless: true,
  },
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
  // The caller left, or the service stops.
  abandoned: { errorType: 'server', sentence: 'was abandoned', endsModel: true, harmless: true },
} as const satisfies Readonly<Record<string, FailureRule>>

export type FailureKind = keyof typeof RULES

interface FailureFacts {
  /** HTTP status of the provider, if there is one. */
  readonly status?: number | undefined
  /** The provider's Retry-After in seconds. */
  readonly retryAfterSeconds?: number | undefined
  /** The provider's word for it, for the log. */
  readonly code?: string | undefined
  /** The provider's message for the log, with keys removed. */
  readonly detail?: string | undefined
  readonly cause?: unknown
}

/** One provider did not serve the request. The message holds no secret and no text of the provider. */
export class AttemptFailure extends Error {
  override readonly name = 'AttemptFailure'
  readonly kind: FailureKind
  readonly status: number | null
  readonly retryAfterSeconds: number | undefined
  readonly code: string | undefined
  readonly detail: string | undefined

  constructor(kind: FailureKind, { status, retryAfterSeconds, code, detail, cause }: FailureFacts = {}) {
    super(RULES[kind].sentence, { cause })
    this.kind = kind
    this.status = status ?? null
    this.retryAfterSeconds = retryAfterSeconds
    this.code = code
    this.detail = detail
  }

  get rule(): FailureRule {
    return RULES[this.kind]
  }

  get errorType(): ErrorType {
    return this.rule.errorType
  }
}
