/** Where raw usage is counted, as the stage `load` sees it. */
import type { DuckDBConnection } from '@duckdb/node-api'

/** A UTC day of raw usage as a source knows it. */
export type SourceDay = {
  /** `YYYY-MM-DD` */
  readonly day: string
  /** Changes when the day's rows may have changed; equal as long as they have not. */
  readonly fingerprint: string
  /** What the day is made of, for people: file names, or parts on the cluster. */
  readonly parts: readonly string[]
  /** Size of the files; without it, the day is counted by itself. */
  readonly bytes?: number
}

export type UsageSource = {
  /** The days with usage, oldest first. */
  readonly listDays: () => Promise<readonly SourceDay[]>
  /**
   * Counts days of `listDays` into temporary tables of the connection: `counted` (per day, app and model; app_id NULL gathers
   * the rejected rows, model NULL is unknown), `duplicates` (per day, app and model, what repeated request_ids are to be taken
   * off) and `rejected` (the rows of the quarantine). Expects the session variable `days`, a list of the same days.
   * @throws DataError that names what cannot be read.
   */
  readonly countDays: (connection: DuckDBConnection, days: readonly SourceDay[]) => Promise<void>
  readonly close: () => Promise<void>
}
