/** Input and output of every stage of a run. */
import type { DuckDBConnection } from '@duckdb/node-api'
import type { Config } from '../config.ts'
import type { RunOptions } from '../run-options.ts'
import type { Progress } from '../terminal/progress.ts'

/** What a run is handed: its settings, the clock, and where it reports to the operator. */
export type Dependencies = {
  readonly config: Config
  /** The present; tests and `--as-of` set it. */
  readonly now: () => Date
  readonly progress: Progress
}

/** A run in progress. Stages share nothing in memory: each reads what the earlier ones wrote. */
export type Run = Dependencies & {
  readonly options: RunOptions
  /** To the warehouse, under the lock of the run. */
  readonly connection: DuckDBConnection
  /** The time that the snapshot will state, in whole seconds. */
  readonly asOf: Date
  /** The last completed UTC day when the run began, `YYYY-MM-DD`. */
  readonly lastDay: string
  readonly rawFolder: string
  readonly snapshotsFolder: string
  /** Folder of the unpublished snapshot; its name starts with a dot. */
  readonly buildFolder: string
}

export type StageResult = {
  /** One line for the operator. */
  readonly summary: string
  /** Figures for the published report. */
  readonly facts: Readonly<Record<string, unknown>>
  /** Facts about unpublished traffic, for the operator and the warehouse only. */
  readonly privateFacts?: Readonly<Record<string, unknown>>
  /** Set if the run ends with this stage. */
  readonly finished?: { readonly outcome: 'published' | 'unchanged'; readonly snapshot: string }
}
