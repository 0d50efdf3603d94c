/** Publishes a snapshot for serving's part of the bench, and measures the cost of the schema `fast`. */
import { copyFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { fillFast } from '../../../pipeline/ranking/candidates.ts'
import { literal } from '../../../pipeline/duckdb/sql-values.ts'
import type { Run } from '../../../pipeline/stages/stage.ts'
import { countSchema, queryRows } from '../../../pipeline/duckdb/statements.ts'
import { timed } from '../measure.ts'
import { STAGES_AFTER_LOAD, prepareRun } from '../pipeline/run.ts'

const metaRow = z.object({
  first_day: z.string(),
  data_through: z.string(),
  app_days: countSchema,
  candidates: countSchema,
})
const bytesRow = z.object({ bytes: countSchema })

const META =
  'SELECT CAST(first_day AS VARCHAR) AS first_day, CAST(data_through AS VARCHAR) AS data_through, ' +
  '(SELECT count(*) FROM snapshot.app_daily) AS app_days, (SELECT count(*) FROM snapshot.fast.apps) AS candidates ' +
  'FROM snapshot.meta'
const BYTES =
  "SELECT used_blocks * block_size AS bytes FROM pragma_database_size() WHERE database_name = 'snapshot'"

/**
 * Publishes the warehouse as the first snapshot. Gives the milliseconds of all that and of the fast layout in it, the
 * bytes of the file and of that layout, the number of app-days and of candidates.
 */
export async function publishFirst(dataDir: string, asOf: Date): Promise<Record<string, number>> {
  const run = await prepareRun(dataDir, asOf)
  const publishMs = await timed(async () => {
    for (const stage of Object.values(STAGES_AFTER_LOAD)) await stage(run)
  })
  return { publishMs, ...(await measureFast(run)) }
}

/** Removes the schema `fast` from a copy of the current snapshot and fills it again. */
async function measureFast({ config: { dataDir }, connection }: Run): Promise<Record<string, number>> {
  const published = join(dataDir, 'current', SNAPSHOT_FILE)
  const copy = join(dataDir, 'copy.duckdb')
  copyFileSync(published, copy)
  await connection.run(`ATTACH ${literal(copy)} AS snapshot; USE snapshot`)
  const bytes = async () => (await queryRows(connection, BYTES, bytesRow))[0]?.bytes ?? Number.NaN
  const [meta] = await queryRows(connection, META, metaRow)
  if (meta === undefined) throw new Error(`${published} has no meta row`)
  await connection.run('DROP SCHEMA snapshot.fast CASCADE; CHECKPOINT snapshot')
  const without = await bytes()
  const fastMs = await timed(async () => {
    await fillFast(connection, {
      days: { from: meta.first_day, to: meta.data_through },
      totals: 'BIGINT',
    })
    await connection.run('CHECKPOINT snapshot')
  })
  const fastBytes = (await bytes()) - without
  await connection.run('USE warehouse; DETACH snapshot')
  rmSync(copy)
  return {
    fastMs,
    fastBytes,
    bytes: statSync(published).size,
    appDays: meta.app_days,
    candidates: meta.candidates,
  }
}
