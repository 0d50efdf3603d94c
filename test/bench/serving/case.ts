/** One measured run of serving's part of the bench, in a separate process; the task is a JSON argument. */
import { copyFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { literal } from '../../../pipeline/duckdb/sql-values.ts'
import { countSchema, queryRows } from '../../../pipeline/duckdb/statements.ts'
import { reportMeasured } from '../measure.ts'
import { STAGES_AFTER_LOAD, prepareRun } from '../pipeline/run.ts'
import { measureWindows } from './windows.ts'

const count = z.int().positive()
/** Publishes the warehouse as of a time, or queries windows. */
const taskSchema = z.union([
  z.object({ dataDir: z.string(), asOf: z.iso.datetime().transform((time) => new Date(time)) }),
  z.object({ dataDir: z.string(), windows: count, plainEvery: count }),
])
export type Task = z.input<typeof taskSchema>

const SIZES = `
  SELECT (SELECT count(*) FROM snapshot.app_daily) AS app_days,
    (SELECT count(*) FROM snapshot.fast.apps) AS candidates,
    (SELECT used_blocks * block_size FROM pragma_database_size() WHERE database_name = 'snapshot') AS bytes`
const BYTES =
  "SELECT used_blocks * block_size AS bytes FROM pragma_database_size() WHERE database_name = 'snapshot'"
const bytesRow = z.object({ bytes: countSchema })
const sizesRow = bytesRow.extend({ app_days: countSchema, candidates: countSchema })

/** Publishes the warehouse as the first snapshot; gives its app-days, candidates and bytes, and the bytes of `fast`. */
async function publishFirst(dataDir: string, asOf: Date): Promise<Record<string, number>> {
  const run = await prepareRun(dataDir, asOf)
  for (const stage of Object.values(STAGES_AFTER_LOAD)) await stage(run)
  const published = join(dataDir, 'current', SNAPSHOT_FILE)
  const copy = join(dataDir, 'copy.duckdb')
  copyFileSync(published, copy)
  const { connection } = run
  await connection.run(`ATTACH ${literal(copy)} AS snapshot; USE snapshot`)
  const [sizes] = await queryRows(connection, SIZES, sizesRow)
  await connection.run('DROP SCHEMA snapshot.fast CASCADE; CHECKPOINT snapshot')
  const [rest] = await queryRows(connection, BYTES, bytesRow)
  await connection.run('USE warehouse; DETACH snapshot')
  rmSync(copy)
  if (sizes === undefined || rest === undefined) throw new Error(`${published} has no size`)
  return {
    appDays: sizes.app_days,
    candidates: sizes.candidates,
    bytes: statSync(published).size,
    fastBytes: sizes.bytes - rest.bytes,
  }
}

const task = taskSchema.parse(JSON.parse(process.argv[2] ?? ''))
reportMeasured(
  'asOf' in task ? await publishFirst(task.dataDir, task.asOf) : await measureWindows(task.dataDir, task),
)
