/**
 * The usage record of one chat request: a line of raw/usage/date=…/*.ndjson. The pipeline reads the first six keys
 * (CONTRACT 7); operators read the rest.
 */

/** One attempt at a provider. */
export interface AttemptRecord {
  /** Model as the caller named it, `author/slug`. */
  readonly model: string
  readonly provider: string
  /** HTTP status of the provider; null without a reply. */
  readonly status: number | null
  /** Why the attempt did not serve the request; null if it did. */
  readonly error_type: string | null
  readonly duration_ms: number
}

export interface UsageRecord {
  /** When the request arrived, ISO 8601 UTC with milliseconds. */
  readonly ts: string
  /** Unique over all processes: the pipeline finds duplicates by it. */
  readonly request_id: string
  /** The app that the request counts for; UNATTRIBUTED_APP_ID (pipeline/contract/dataset.ts) if it names none. */
  readonly app_id: number
  /** Tokens as counted by the serving provider; both null if it reported none. */
  readonly prompt_tokens: number | null
  readonly completion_tokens: number | null
  /** Parts of the two counts: reasoning, and read from a cache; null if the provider reported none. */
  readonly reasoning_tokens: number | null
  readonly cached_tokens: number | null
  /**
   * 1 if a provider served the request, whole or in part; otherwise 0, so that failures do not count in the rankings.
   */
  readonly requests: 0 | 1
  /** Model and provider that served; null if none did. */
  readonly model: string | null
  readonly provider: string | null
  readonly account_id: string
  readonly stream: boolean
  /** HTTP status sent to the caller. */
  readonly status: number
  /** The end: whole, cut by the provider after the first token, left by the caller, or never served. */
  readonly outcome: 'completed' | 'cut' | 'left' | 'failed'
  /** Why the tokens are null. */
  readonly usage_missing: string | null
  /** From arrival to the first meaningful token and to the end, in milliseconds. */
  readonly first_token_ms: number | null
  readonly duration_ms: number
  readonly attempts: readonly AttemptRecord[]
}

/** Records a request; resolves once the record is written or waits for a retry. Never rejects. */
export type RecordUsage = (record: UsageRecord) => Promise<void>
