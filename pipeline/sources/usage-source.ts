/** A source of raw usage, for the stage `load`. */
import type { DuckDBConnection } from '@duckdb/node-api'

/** A UTC day of raw usage. */
export type SourceDay = {
  /** `YYYY-MM-DD` */
  readonly day: string
  /** Equal as long as the day's rows have not changed. */
  readonly fingerprint: string
  /** The day's parts, for people: file names, or data parts of the cluster. */
  readonly parts: readonly string[]
  /** Size of the files; a day without it is counted alone. */
  readonly bytes?: number
}

export type UsageSource = {
  /** The days with usage, oldest first. */
  readonly listDays: () => Promise<readonly SourceDay[]>
  /**
   * Counts days of `listDays` into temporary tables of the connection: `counted` (per day, app and model; app_id NULL holds
   * the rejected rows, model NULL is unknown), `duplicates` (per day, app and model, to be subtracted) and `rejected` (the
   * quarantine). Expects the session variable `days`, a list of the same days.
   * @throws DataError with what cannot be read.
   */
  readonly countDays: (connection: DuckDBConnection, days: readonly SourceDay[]) => Promise<void>
  readonly close: () => Promise<void>
}
