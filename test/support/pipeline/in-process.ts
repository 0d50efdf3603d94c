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

/** One run at the given time, with these settings; resolves to its report and its notes, and rejects if the run fails. */
export async function runAt(
  dataDir: string,
  asOf: string,
  { settings = {}, ...options }: Partial<RunOptions> & { settings?: Readonly<Record<string, string>> } = {},
): Promise<Report & { readonly notes: readonly string[] }> {
  const notes: string[] = []
  const config = readConfig({ DATA_DIR: dataDir, ...settings })
  const progress = { ...SILENT, note: (text: string) => void notes.push(text) }
  const dependencies = { config, now: () => new Date(asOf), progress }
  return { ...(await runNightly(dependencies, { ...USUAL_RUN, ...options })), notes }
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
  return retract.work(at(dataDir, now), { reason, 'dry-run': false, json: false }, [id])
}

/** `prune` at the given time. */
export function pruneAt(dataDir: string, now: string, keepDays: number): Promise<unknown> {
  return prune.work(at(dataDir, now), { 'keep-days': keepDays, 'dry-run': false, json: false }, [])
}

/** What a command is handed; its output is dropped. */
function at(dataDir: string, now: string): Dependencies {
  const silent = { print: () => undefined, note: () => undefined }
  return { config: readConfig({ DATA_DIR: dataDir }), progress: SILENT, now: () => new Date(now), ...silent }
}
