/** The measured cases of the pipeline's part of the bench. Each runs in a process of its own and resolves to its figures. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { join } from 'node:path'
import { readConfig } from '../../../pipeline/config.ts'
import { FLOOR_DATE, lastCompletedDay, snapshotId } from '../../../pipeline/contract/calendar.ts'
import { dateValue, literal, timeValue } from '../../../pipeline/duckdb/sql-values.ts'
import { setVariables } from '../../../pipeline/duckdb/statements.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { USUAL_RUN } from '../../../pipeline/run-options.ts'
import { runNightly } from '../../../pipeline/run.ts'
import { bundle } from '../../../pipeline/stages/bundle.ts'
import { check } from '../../../pipeline/stages/check.ts'
import { gate } from '../../../pipeline/stages/gate.ts'
import { load } from '../../../pipeline/stages/load.ts'
import { publish } from '../../../pipeline/stages/publish.ts'
import { rank } from '../../../pipeline/stages/rank.ts'
import { resolve } from '../../../pipeline/stages/resolve.ts'
import type { Run } from '../../../pipeline/stages/stage.ts'
import { SILENT } from '../../support/pipeline/in-process.ts'
import { withDatabase } from '../../support/pipeline/nightly.ts'
import type { DayKind } from '../data.ts'
import { CLOCKS, timed, type Figures } from '../measure.ts'

/** A data folder, and the time of a run over it. */
type Night = { readonly dataDir: string; readonly asOf: string }

type Clocked = { readonly clock: keyof typeof CLOCKS }

const { memory } = readConfig(process.env)

/** Baseline of a day: one GROUP BY over its file, without checks or storage; chat's records may repeat ids. */
export function scan({ file, kind, clock }: Clocked & { file: string; kind: DayKind }): Figures {
  const once = `(SELECT DISTINCT ON (request_id) * FROM ${literal(file)})`
  const [by, rows] = kind === 'records' ? ['app', once] : ['app_id', literal(file)]
  const group = `CREATE TEMP TABLE bare AS
    SELECT ${by}, model, count(*) AS requests, sum(prompt_tokens) AS prompt, sum(completion_tokens) AS completion
    FROM ${rows} GROUP BY ALL`
  const measured = (connection: DuckDBConnection) => CLOCKS[clock](() => connection.run(group))
  return withDatabase(async (connection) => ({ ms: await measured(connection) }), ':memory:', {
    memory_limit: memory,
  })
}

/** The stage load, from listing the folder to the rows in the warehouse. */
export async function loadDay({ clock, ...night }: Night & Clocked): Figures {
  const run = await prepareRun(night)
  return { ms: await CLOCKS[clock](() => load(run)) }
}

/** A nightly run: in total, and each stage by its report. */
export async function wholeNight({ dataDir, asOf }: Night): Figures {
  const config = readConfig({ ...process.env, DATA_DIR: dataDir })
  const start = performance.now()
  const report = await runNightly({ config, now: () => new Date(asOf), progress: SILENT })
  const whole = performance.now() - start
  const stages = report.stages.map(({ stage, ms }) => [String(stage), Number(ms)] as const)
  return { whole, ...Object.fromEntries(stages) }
}

/** Baseline of the history: its public rows in order, as one table in one file. */
export async function bareTable({ dataDir }: { readonly dataDir: string }): Figures {
  const { connection } = await openWarehouse({ dataDir, memory })
  await connection.run(`ATTACH ${literal(join(dataDir, 'bare.duckdb'))} AS bare`)
  const ms = await timed(() =>
    connection.run(`CREATE TABLE bare.app_daily AS
      SELECT u.day, c.canonical_id, u.requests, u.prompt_tokens, u.completion_tokens
      FROM usage_daily AS u JOIN resolved AS c ON c.app_id = u.app_id
      WHERE c.published ORDER BY u.day, c.canonical_id`),
  )
  return { ms }
}

/** Every stage after load, over a prepared warehouse. */
export async function laterStages(night: Night): Figures {
  const run = await prepareRun(night)
  const figures: Record<string, number> = {}
  for (const [name, stage] of Object.entries({ resolve, rank, check, gate, bundle, publish }))
    figures[name] = await timed(() => stage(run))
  return figures
}

/** A run over the data folder; its connection stays open as long as the process. */
async function prepareRun({ dataDir, asOf }: Night): Promise<Run> {
  const config = readConfig({ ...process.env, DATA_DIR: dataDir })
  const { connection } = await openWarehouse({ dataDir, memory })
  const time = new Date(asOf)
  const lastDay = lastCompletedDay(time)
  await setVariables(connection, {
    as_of: timeValue(time),
    floor: dateValue(FLOOR_DATE),
    last_day: dateValue(lastDay),
  })
  const snapshotsFolder = join(dataDir, 'snapshots')
  return {
    config,
    connection,
    now: () => time,
    progress: SILENT,
    options: USUAL_RUN,
    asOf: time,
    lastDay,
    rawFolder: join(dataDir, 'raw'),
    snapshotsFolder,
    buildFolder: join(snapshotsFolder, `.building-${snapshotId(time)}`),
  }
}
