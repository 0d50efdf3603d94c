/** `prune`: removes old snapshots, except those that are likely to be cited. */
import { addDays, asOfFromId, utcDay } from '../contract/calendar.ts'
import { underLock } from '../duckdb/warehouse.ts'
import { JSON_OPTION, flag, required, wholeNumber } from '../program/options.ts'
import { pluralize } from '../program/terminal.ts'
import { currentSnapshot, listSnapshots, removeSnapshot } from '../snapshot/list.ts'
import { recordPruned, recordPublished } from '../snapshot/records.ts'
import { command, printResult, type Dependencies } from './command.ts'

export const prune = command({
  summary:
    'removes snapshots older than N days; the last of each month, the current one and all records stay for good',
  options: {
    'keep-days': required(
      'N',
      'keeps the snapshots of the last N days.',
      wholeNumber(0, 999_999).default(90),
    ),
    'dry-run': flag('lists the snapshots; removes nothing'),
    ...JSON_OPTION,
  },
  async work(dependencies, { 'keep-days': days, 'dry-run': dryRun, json }) {
    const removed = await pruneSnapshots(dependencies, days, dryRun)
    const end = `${pluralize(removed.length, 'snapshot')} ${dryRun ? 'to remove' : 'removed'}`
    printResult(dependencies, json, { removed, dry_run: dryRun }, [...removed, end])
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
