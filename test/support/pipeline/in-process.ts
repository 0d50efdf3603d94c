/** Runs of the pipeline in the test's process, for tests with many runs or a look at the warehouse. */
import { join } from 'node:path'
import type { Dependencies } from '../../../pipeline/commands/command.ts'
import { prune } from '../../../pipeline/commands/prune.ts'
import { retract } from '../../../pipeline/commands/retract.ts'
import { readConfig } from '../../../pipeline/config.ts'
import type { Report } from '../../../pipeline/run-end.ts'
import { runNightly } from '../../../pipeline/run.ts'
import { USUAL_RUN } from '../../../pipeline/run-options.ts'
import type { RunOptions } from '../../../pipeline/run-options.ts'
import { query } from './nightly.ts'
import type { TextRow } from './nightly.ts'

export const SILENT = { step: () => undefined, finished: () => undefined, note: () => undefined }

/** One run at the given time; rejects if the run fails. */
export function runAt(dataDir: string, asOf: string, options: Partial<RunOptions> = {}): Promise<Report> {
  const config = readConfig({ DATA_DIR: dataDir })
  const dependencies = { config, now: () => new Date(asOf), progress: SILENT }
  return runNightly(dependencies, { ...USUAL_RUN, ...options })
}

/** One run with these settings; resolves to its report and its notes. */
export async function runNoting(
  dataDir: string,
  asOf: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<{ readonly report: Report; readonly notes: readonly string[] }> {
  const notes: string[] = []
  const progress = { ...SILENT, note: (text: string) => void notes.push(text) }
  const config = readConfig({ DATA_DIR: dataDir, ...settings })
  return { report: await runNightly({ config, now: () => new Date(asOf), progress }), notes }
}

/** Queries the private warehouse; every value is text. */
export function queryWarehouse(dataDir: string, sql: string): Promise<TextRow[]> {
  return query(join(dataDir, 'warehouse.duckdb'), sql)
}

/** A figure in a stage's part of the report. */
export function fact(report: Report, stage: string, name: string): unknown {
  return report.stages.find((part) => part['stage'] === stage)?.[name]
}

/** `retract` at the given time. */
export function retractAt(dataDir: string, now: string, id: string, reason: string): Promise<unknown> {
  return Promise.resolve(retract.prepare([id, '--reason', reason])(at(dataDir, now)))
}

/** `prune` at the given time. */
export function pruneAt(dataDir: string, now: string, keepDays: number): Promise<unknown> {
  return Promise.resolve(prune.prepare(['--keep-days', String(keepDays)])(at(dataDir, now)))
}

/** What a command is handed; its output is dropped. */
function at(dataDir: string, now: string): Dependencies {
  const silent = { print: () => undefined, note: () => undefined }
  return { config: readConfig({ DATA_DIR: dataDir }), progress: SILENT, now: () => new Date(now), ...silent }
}
