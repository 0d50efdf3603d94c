/** The routes of the dataset (CONTRACT 4). */
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { Clock } from '../http/call.ts'
import type { Route } from '../http/route.ts'
import { MODEL_RANKING_PATH, RANKINGS_PATH, SERIES_PATH, STATUS_PATH } from '../paths.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { parseModels } from './models.ts'
import { DATASET_OPERATIONS as OPERATIONS } from './operations.ts'
import { parseRankings } from './rankings.ts'
import { replyRows, type ReplyDependencies } from './reply.ts'
import { parseSeries } from './series.ts'
import { snapshotFile } from './snapshots/files.ts'
import { listSnapshots, showSnapshot } from './snapshots/list.ts'
import { datasetStatus } from './status.ts'

interface DatasetDependencies extends ReplyDependencies {
  readonly clock: Clock
  readonly schedule: CronSchedule
}

export function datasetRoutes({ clock, schedule, ...dependencies }: DatasetDependencies): readonly Route[] {
  const { snapshots } = dependencies
  // Rows need a key and share its limits.
  const rows = { method: 'GET', access: 'any', limited: true } as const
  const open = { method: 'GET', access: 'open' } as const
  const one = `${SNAPSHOTS_PATH}/:id`
  const file = snapshotFile(snapshots)
  const status = datasetStatus(snapshots, { schedule, clock })
  return [
    {
      ...rows,
      path: RANKINGS_PATH,
      operation: OPERATIONS.rankings,
      handle: replyRows(dependencies, parseRankings),
    },
    {
      ...rows,
      path: SERIES_PATH,
      operation: OPERATIONS.series,
      handle: replyRows(dependencies, parseSeries),
    },
    {
      ...rows,
      path: MODEL_RANKING_PATH,
      operation: OPERATIONS.models,
      handle: replyRows(dependencies, parseModels),
    },
    { ...open, path: SNAPSHOTS_PATH, operation: OPERATIONS.snapshots, handle: listSnapshots(snapshots) },
    { ...open, path: one, operation: OPERATIONS.snapshot, handle: showSnapshot(snapshots) },
    { ...open, path: `${one}/:file`, operation: OPERATIONS.file, handle: file },
    { ...open, path: `${one}/:table/:file`, operation: OPERATIONS.month, handle: file },
    { ...open, path: STATUS_PATH, operation: OPERATIONS.status, handle: status },
  ]
}
