/** The routes of the dataset (CONTRACT 4). */
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { ApplyLimits } from '../accounts/limits/rate-limiter.ts'
import type { Clock } from '../http/call.ts'
import { MODEL_RANKING_PATH, RANKINGS_PATH, SERIES_PATH, STATUS_PATH } from '../paths.ts'
import type { Route } from '../http/route.ts'
import type { Answers } from './rows/answers.ts'
import { replyRows, type RowsDependencies } from './rows/reply-rows.ts'
import { parseModelRanking } from './models/model-ranking.ts'
import { parseRankings } from './rankings/app-rankings.ts'
import { parseSeries } from './series/app-series.ts'
import type { Snapshots } from './snapshots/choose.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { DATASET_OPERATIONS } from './operations.ts'
import { snapshotFile } from './snapshots/files.ts'
import { listSnapshots, showSnapshot } from './snapshots/list.ts'
import { datasetStatus } from './status.ts'

interface DatasetDependencies {
  readonly snapshots: Snapshots
  readonly answers: Answers
  readonly applyLimits: ApplyLimits
  readonly clock: Clock
  readonly schedule: CronSchedule
}

export function datasetRoutes({
  snapshots,
  answers,
  applyLimits,
  clock,
  schedule,
}: DatasetDependencies): Route[] {
  const open = { method: 'GET', access: 'open' } as const
  return [
    ...rowsRoutes({ snapshots, answers, applyLimits }),
    {
      ...open,
      path: SNAPSHOTS_PATH,
      operation: DATASET_OPERATIONS.snapshots,
      handle: listSnapshots(snapshots),
    },
    {
      ...open,
      path: `${SNAPSHOTS_PATH}/:id`,
      operation: DATASET_OPERATIONS.snapshot,
      handle: showSnapshot(snapshots),
    },
    ...[
      { file: ':file', operation: DATASET_OPERATIONS.file },
      { file: ':table/:file', operation: DATASET_OPERATIONS.month },
    ].map(({ file, operation }) => ({
      ...open,
      path: `${SNAPSHOTS_PATH}/:id/${file}`,
      operation,
      handle: snapshotFile(snapshots),
    })),
    {
      ...open,
      path: STATUS_PATH,
      operation: DATASET_OPERATIONS.status,
      handle: datasetStatus(snapshots, { schedule, clock }),
    },
  ]
}

/** The routes of rows: they need a key and share its limits. */
function rowsRoutes(dependencies: RowsDependencies): Route[] {
  const { rankings, series, models } = DATASET_OPERATIONS
  return [
    { path: RANKINGS_PATH, operation: rankings, parse: parseRankings },
    { path: SERIES_PATH, operation: series, parse: parseSeries },
    { path: MODEL_RANKING_PATH, operation: models, parse: parseModelRanking },
  ].map(({ path, operation, parse }) => ({
    method: 'GET',
    path,
    access: 'any',
    limited: true,
    operation,
    handle: replyRows(dependencies, parse),
  }))
}
