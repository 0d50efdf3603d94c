/**
 * What one chat request leaves behind: a line of raw/usage/date=…/*.ndjson, which the next night counts. The
 * first six keys are the pipeline's (CONTRACT 7); the rest tells an operator what happened.
 */

/** One try of one provider. */
export interface AttemptRecord {
  /** Model as the caller named it, `author/slug`. */
  readonly model: string
  readonly provider: string
  /** HTTP status of the provider; null when no reply came. */
  readonly status: number | null
  /** Why the attempt did not serve the request; null for the one that did. */
  readonly error_type: string | null
  readonly duration_ms: number
}

export interface UsageRecord {
  /** When the request arrived, ISO 8601 UTC with milliseconds. */
  readonly ts: string
  /** Unique over all processes: the duplicate rule of the pipeline goes by it. */
  readonly request_id: string
  /** The app the request is attributed to; UNATTRIBUTED_APP_ID (pipeline/contract/dataset.ts) without attribution. */
  readonly app_id: number
  /** Tokens as the serving provider counted them; both null when it reported none. */
  readonly prompt_tokens: number | null
  readonly completion_tokens: number | null
  /** Parts of the two that the provider reports by itself: thought, and read from a cache; null where it reported none. */
  readonly reasoning_tokens: number | null
  readonly cached_tokens: number | null
  /** 1 when a provider served the request, whole or in part; 0 when none did, so that failures rank nobody. */
  readonly requests: 0 | 1
  /** Model and provider that served; null when none did. */
  readonly model: string | null
  readonly provider: string | null
  readonly account_id: string
  readonly stream: boolean
  /** HTTP status the caller was given. */
  readonly status: number
  /** How it ended: whole, cut by the provider after the first token, left by the caller, or never served. */
  readonly outcome: 'completed' | 'cut' | 'left' | 'failed'
  /** Why the tokens are null, where they are. */
  readonly usage_missing: string | null
  /** From arrival to the first meaningful token and to the end, in milliseconds. */
  readonly first_token_ms: number | null
  readonly duration_ms: number
  readonly attempts: readonly AttemptRecord[]
}

/** Keeps a record; resolves once it is written, and never rejects: a failed write is kept and tried again. */
export type RecordUsage = (record: UsageRecord) => Promise<void>
