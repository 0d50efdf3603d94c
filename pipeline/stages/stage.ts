/** What every stage of a run is given and what it gives back. */
import type { DuckDBConnection } from '@duckdb/node-api'
import type { Config } from '../config.ts'
import type { Outcome } from '../contract/last-run.ts'
import type { Dependencies } from '../dependencies.ts'
import type { RunOptions } from '../run-options.ts'

/** A run in progress. Stages hand each other nothing in memory: each reads what the earlier ones wrote. */
export type Run = {
  readonly config: Config
  readonly dependencies: Dependencies
  readonly options: RunOptions
  /** To the warehouse; DuckDB's lock on it is the lock of the run. */
  readonly connection: DuckDBConnection
  /** The time the snapshot will state, whole seconds. */
  readonly asOf: Date
  /** The last UTC day that was over when the run began, `YYYY-MM-DD`. */
  readonly lastDay: string
  readonly rawFolder: string
  readonly snapshotsFolder: string
  /** Where the snapshot is built before it is published; its name starts with a dot. */
  readonly buildFolder: string
}

export type StageResult = {
  /** One line for the operator. */
  readonly summary: string
  /** Figures for the run's report. */
  readonly facts: Readonly<Record<string, unknown>>
  /** Further facts about traffic that is not published: for the operator and the warehouse alone. */
  readonly privateFacts?: Readonly<Record<string, unknown>>
  /** Set when the run is over with this stage. */
  readonly finished?: { readonly outcome: Outcome; readonly snapshot: string }
}

export type Stage = {
  readonly name: string
  readonly run: (run: Run) => Promise<StageResult>
}
