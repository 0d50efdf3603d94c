/** Why a provider did not serve a request, and what follows from it. */

/** Stable names of failures, for clients and records: the vocabulary that the SDKs of the field know. */
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
  /** Whether the other providers of the model would say the same, so that only another model can help. */
  readonly endsModel?: true
  /** Whether it says nothing of the provider's health. */
  readonly harmless?: true
}

/** Each kind of failure with its consequences. */
const RULES = {
  connection: { errorType: 'provider_unavailable', sentence: 'could not be reached' },
  timeout: { errorType: 'timeout', sentence: 'did not answer in time' },
  rateLimited: { errorType: 'rate_limit_exceeded', sentence: 'takes no more requests for now' },
  overloaded: { errorType: 'provider_overloaded', sentence: 'is overloaded' },
  failed: { errorType: 'provider_unavailable', sentence: 'failed' },
  // Its own 401, 402, 403 and 404 are between us and the provider, never the caller's.
  deniedUs: { errorType: 'provider_unavailable', sentence: 'did not accept the request of this service' },
  invalidReply: { errorType: 'provider_unavailable', sentence: 'sent a reply that cannot be used' },
  cut: { errorType: 'provider_unavailable', sentence: 'ended its reply before it was whole' },
  refused: { errorType: 'invalid_request', sentence: 'refused the request', endsModel: true, harmless: true },
  tooLong: {
    errorType: 'context_length_exceeded',
    sentence: 'refused the request: it is longer than the model can take',
    endsModel: true,
    harmless: true,
  },
  filtered: {
    errorType: 'content_policy_violation',
    sentence: 'refused the content of the request',
    endsModel: true,
    harmless: true,
  },
  outOfTime: {
    errorType: 'timeout',
    sentence: 'did not answer in the time that the request had left',
    harmless: true,
  },
  // Found out once the reply has begun: no other provider is asked.
  notRead: {
    errorType: 'timeout',
    sentence: 'was cut off, since the caller did not read its reply',
    harmless: true,
  },
  // The caller is gone, or the service stops: nobody waits for an answer any more.
  abandoned: { errorType: 'server', sentence: 'was not waited for', endsModel: true, harmless: true },
} as const satisfies Readonly<Record<string, FailureRule>>

export type FailureKind = keyof typeof RULES

interface FailureFacts {
  /** HTTP status of the provider; absent when no reply came. */
  readonly status?: number | undefined
  /** Seconds after which the provider wants to be asked again. */
  readonly retryAfterSeconds?: number | undefined
  /** What the provider calls it: one word, for the log. */
  readonly code?: string | undefined
  readonly cause?: unknown
}

/** One provider did not serve the request. The message names no secret and quotes nothing of the provider's. */
export class AttemptFailure extends Error {
  override readonly name = 'AttemptFailure'
  readonly kind: FailureKind
  readonly status: number | null
  readonly retryAfterSeconds: number | undefined
  readonly code: string | undefined

  constructor(kind: FailureKind, { status, retryAfterSeconds, code, cause }: FailureFacts = {}) {
    super(RULES[kind].sentence, { cause })
    this.kind = kind
    this.status = status ?? null
    this.retryAfterSeconds = retryAfterSeconds
    this.code = code
  }

  get rule(): FailureRule {
    return RULES[this.kind]
  }

  get errorType(): ErrorType {
    return this.rule.errorType
  }
}

const KIND_BY_STATUS: Readonly<Record<number, FailureKind>> = {
  400: 'refused',
  408: 'timeout',
  413: 'refused',
  422: 'refused',
  429: 'rateLimited',
  503: 'overloaded',
  504: 'timeout',
  524: 'timeout',
  529: 'overloaded',
}

const KIND_BY_CODE: Readonly<Record<string, FailureKind>> = {
  content_filter: 'filtered',
  content_policy_violation: 'filtered',
  context_length_exceeded: 'tooLong',
  rate_limit_exceeded: 'rateLimited',
}

/** What a status other than 200 means; the provider's own word for it may tell more. */
export function failureOfStatus(status: number, facts: Omit<FailureFacts, 'status'> = {}): AttemptFailure {
  const byStatus = KIND_BY_STATUS[status] ?? kindByClass(status)
  const byCode = facts.code === undefined ? undefined : KIND_BY_CODE[facts.code]
  const kind = byStatus === 'refused' && byCode !== undefined ? byCode : byStatus
  return new AttemptFailure(kind, { ...facts, status })
}

function kindByClass(status: number): FailureKind {
  if (status < 400) return 'invalidReply'
  return status < 500 ? 'deniedUs' : 'failed'
}

/** What an error inside of a reply means that began as a success. */
export function failureInReply(code: string | number | undefined): AttemptFailure {
  const number = Number(code)
  if (Number.isInteger(number) && number >= 400 && number <= 599) return failureOfStatus(number)
  const word = typeof code === 'string' ? code : undefined
  const kind = word === undefined ? undefined : KIND_BY_CODE[word]
  return new AttemptFailure(kind ?? 'invalidReply', { status: 200, code: word })
}
