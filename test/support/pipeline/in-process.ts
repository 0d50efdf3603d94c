/** Runs of the pipeline in the test's process, for tests with many runs or a look at the warehouse. */
import { join } from 'node:path'
import { readConfig } from '../../../pipeline/config.ts'
import type { Report } from '../../../pipeline/run-end.ts'
import { runNightly } from '../../../pipeline/run.ts'
import { USUAL_RUN, type RunOptions } from '../../../pipeline/run-options.ts'
import { query, type TextRow } from './nightly.ts'

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
