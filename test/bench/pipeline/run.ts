/** A run in progress, for measuring its stages one by one. */
import { join } from 'node:path'
import { bundle } from '../../../pipeline/stages/bundle.ts'
import { check } from '../../../pipeline/stages/check.ts'
import { readConfig } from '../../../pipeline/config.ts'
import { FLOOR_DATE, lastCompletedDay, snapshotId } from '../../../pipeline/contract/calendar.ts'
import { gate } from '../../../pipeline/stages/gate.ts'
import { publish } from '../../../pipeline/stages/publish.ts'
import { rank } from '../../../pipeline/stages/rank.ts'
import { resolve } from '../../../pipeline/stages/resolve.ts'
import { USUAL_RUN } from '../../../pipeline/run-options.ts'
import { dateValue, timeValue } from '../../../pipeline/duckdb/sql-values.ts'
import type { Run } from '../../../pipeline/stages/stage.ts'
import { setVariables } from '../../../pipeline/duckdb/statements.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'

/** The stages after load, in their order. */
export const STAGES_AFTER_LOAD = { resolve, rank, check, gate, bundle, publish }

/** A silent progress. */
export const silent = { step: () => undefined, finished: () => undefined, note: () => undefined }

/** A run at `time` over the data folder; its connection stays open as long as the process. */
export async function prepareRun(folder: string, time: Date): Promise<Run> {
  const config = readConfig({ ...process.env, DATA_DIR: folder })
  const { connection } = await openWarehouse(folder, config.memory)
  const lastDay = lastCompletedDay(time)
  await setVariables(connection, {
    as_of: timeValue(time),
    floor: dateValue(FLOOR_DATE),
    last_day: dateValue(lastDay),
  })
  const snapshotsFolder = join(folder, 'snapshots')
  return {
    config,
    connection,
    dependencies: { now: () => time, progress: silent },
    options: USUAL_RUN,
    asOf: time,
    lastDay,
    rawFolder: join(folder, 'raw'),
    snapshotsFolder,
    buildFolder: join(snapshotsFolder, `.building-${snapshotId(time)}`),
  }
}
