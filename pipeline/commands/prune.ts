/** `prune`: removes old snapshots, except those that are likely to be cited. */
import { addDays, asOfFromId, utcDay } from '../contract/calendar.ts'
import { underLock } from '../duckdb/warehouse.ts'
import { textOption, UsageError } from '../program/program.ts'
import { pluralize } from '../program/terminal.ts'
import { currentSnapshot, listSnapshots, removeSnapshot } from '../snapshot/list.ts'
import { recordPruned, recordPublished } from '../snapshot/records.ts'
import { DRY_RUN_OPTION, JSON_OPTION, command, printResult, type Dependencies } from './command.ts'

const DEFAULT_KEEP_DAYS = '90'

export const prune = command({
  usage: 'prune [--keep-days N] [--dry-run] [--json]',
  summary: `removes snapshots older than N days (default ${DEFAULT_KEEP_DAYS}); the last of each month, the current one and all records stay for good`,
  options: {
    ...JSON_OPTION,
    ...DRY_RUN_OPTION,
    'keep-days': {
      ...textOption('N', `keeps the snapshots of the last N days; default: ${DEFAULT_KEEP_DAYS}`),
      default: DEFAULT_KEEP_DAYS,
    },
  },
  prepare({ json, 'keep-days': days, 'dry-run': dryRun }) {
    if (!/^\d{1,6}$/.test(days)) {
      throw new UsageError(`--keep-days "${days}" is not a number of days: expected 0 or more`)
    }
    return async (dependencies) => {
      const removed = await pruneSnapshots(dependencies, Number(days), dryRun)
      const end = `${pluralize(removed.length, 'snapshot')} ${dryRun ? 'to remove' : 'removed'}`
      printResult(dependencies, json, { removed, dry_run: dryRun }, [...removed, end])
    }
  },
})

/** Removes old snapshots, or only lists them; resolves to their identifiers. */
export async function pruneSnapshots(
  { config, now }: Pick<Dependencies, 'config' | 'now'>,
  keepDays: number,
  dryRun: boolean,
): Promise<readonly string[]> {
  const { dataDir } = config
  const superfluous = () => superfluousSnapshots(dataDir, addDays(utcDay(now()), -keepDays))
  if (dryRun || superfluous().length === 0) return superfluous()
  return await underLock(config, () => {
    const removed = superfluous()
    for (const id of removed) {
      recordPublished(dataDir, id)
      // On a full disk there is no space for the time in the record before.
      removeSnapshot(dataDir, id)
      recordPruned(dataDir, id, now())
    }
    return removed
  })
}

/** The removable snapshots: computed before the day `oldestKept`, not the last of their UTC month, not current. */
function superfluousSnapshots(dataDir: string, oldestKept: string): string[] {
  const ids = listSnapshots(dataDir)
  const current = currentSnapshot(dataDir)
  const lastOfMonth = new Map(ids.map((id) => [id.slice(0, 6), id]))
  return ids.filter((id) => {
    const asOf = asOfFromId(id)
    const isOld = asOf !== undefined && utcDay(asOf) < oldestKept
    return isOld && id !== current && lastOfMonth.get(id.slice(0, 6)) !== id
  })
}
