/** One measured run of the pipeline's part of the bench, in a separate process; the task is a JSON argument. */
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { z } from 'zod'
import { readConfig } from '../../../pipeline/config.ts'
import { load } from '../../../pipeline/stages/load.ts'
import { runNightly } from '../../../pipeline/run.ts'
import { literal } from '../../../pipeline/duckdb/sql-values.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { reportMeasured, timed } from '../measure.ts'
import { STAGES_AFTER_LOAD, prepareRun, silent } from './run.ts'

const dataDir = z.string()
const asOf = z.iso.datetime().transform((time) => new Date(time))

/** The cases. */
const taskSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('scan'), file: z.string() }),
  z.object({ kind: z.literal('load'), dataDir, asOf }),
  z.object({ kind: z.literal('night'), dataDir, asOf }),
  z.object({ kind: z.literal('stages'), dataDir, asOf }),
  z.object({ kind: z.literal('table'), dataDir }),
])
export type Task = z.input<typeof taskSchema>

const { memory } = readConfig(process.env)

/** Baseline of a day: one GROUP BY without checks or storage. */
async function scan(file: string): Promise<Record<string, number>> {
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: memory })
  const connection = await instance.connect()
  const ms = await timed(() =>
    connection.run(`CREATE TEMP TABLE bare AS
      SELECT app_id, model, count(*) AS requests, sum(prompt_tokens) AS prompt, sum(completion_tokens) AS completion
      FROM read_parquet(${literal(file)}) GROUP BY app_id, model`),
  )
  return { ms }
}

/** Baseline of the history: its public rows in order, as one table in one file. */
async function table(folder: string): Promise<Record<string, number>> {
  const { connection } = await openWarehouse(folder, memory)
  await connection.run(`ATTACH ${literal(join(folder, 'bare.duckdb'))} AS bare`)
  const ms = await timed(() =>
    connection.run(`CREATE TABLE bare.app_daily AS
      SELECT u.day, c.canonical_id, u.requests, u.prompt_tokens, u.completion_tokens
      FROM usage_daily AS u JOIN resolved AS c ON c.app_id = u.app_id
      WHERE c.published ORDER BY u.day, c.canonical_id`),
  )
  return { ms }
}

/** The stage load, from listing the folder to the rows in the warehouse. */
async function loadDay(folder: string, time: Date): Promise<Record<string, number>> {
  const run = await prepareRun(folder, time)
  return { ms: await timed(() => load(run)) }
}

/** Every stage after load, over a prepared warehouse. */
async function laterStages(folder: string, time: Date): Promise<Record<string, number>> {
  const run = await prepareRun(folder, time)
  const figures: Record<string, number> = {}
  for (const [name, stage] of Object.entries(STAGES_AFTER_LOAD)) figures[name] = await timed(() => stage(run))
  return figures
}

/** A nightly run: in total, and each stage by its report. */
async function night(folder: string, time: Date): Promise<Record<string, number>> {
  const config = readConfig({ ...process.env, DATA_DIR: folder })
  const start = performance.now()
  const report = await runNightly(config, { now: () => time, progress: silent })
  const whole = performance.now() - start
  const stages = report.stages.map(({ stage, ms }) => [String(stage), Number(ms)] as const)
  return { whole, ...Object.fromEntries(stages) }
}

function measure(task: z.output<typeof taskSchema>): Promise<Record<string, number>> {
  switch (task.kind) {
    case 'scan':
      return scan(task.file)
    case 'table':
      return table(task.dataDir)
    case 'load':
      return loadDay(task.dataDir, task.asOf)
    case 'stages':
      return laterStages(task.dataDir, task.asOf)
    case 'night':
      return night(task.dataDir, task.asOf)
  }
}

reportMeasured(await measure(taskSchema.parse(JSON.parse(process.argv[2] ?? ''))))
