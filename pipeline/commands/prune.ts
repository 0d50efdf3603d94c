/** `prune`: removes old snapshots, except those that are likely to be cited. */
import { UsageError, parseCommandLine } from '../program/program.ts'
import { addDays, asOfFromId, utcDay } from '../contract/calendar.ts'
import { pluralize } from '../program/terminal.ts'
import { currentSnapshot, listSnapshots, removeSnapshot } from '../snapshot/list.ts'
import { recordPruned, recordPublished } from '../snapshot/records.ts'
import { underLock } from '../duckdb/warehouse.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command, Dependencies } from './command.ts'

const DEFAULT_KEEP_DAYS = 90

export const prune: Command = {
  usage: 'prune [--keep-days N] [--dry-run] [--json]',
  summary: `removes snapshots older than N days (default ${DEFAULT_KEEP_DAYS}); the last of each month, the current one and all records stay for good`,
  prepare(args) {
    const { values } = parseCommandLine({
      args,
      options: {
        ...JSON_OPTION,
        'keep-days': { type: 'string', default: String(DEFAULT_KEEP_DAYS) },
        'dry-run': { type: 'boolean', default: false },
      },
    })
    const keepDays = readDays(values['keep-days'])
    return async (dependencies) => {
      const removed = await pruneSnapshots(dependencies, keepDays, values['dry-run'])
      const verb = values['dry-run'] ? 'to remove' : 'removed'
      printResult(dependencies, values.json, { removed, dry_run: values['dry-run'] }, [
        ...removed,
        `${pluralize(removed.length, 'snapshot')} ${verb}`,
      ])
    }
  },
}

function readDays(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw new UsageError(`--keep-days "${text}" is not a number of days: expected 0 or more`)
}

/** Removes old snapshots, or only lists them; resolves to their identifiers. */
export async function pruneSnapshots(
  dependencies: Pick<Dependencies, 'config' | 'now'>,
  keepDays: number,
  dryRun: boolean,
): Promise<readonly string[]> {
  const { dataDir } = dependencies.config
  const superfluous = () =>
    superfluousSnapshots(listSnapshots(dataDir), {
      oldestKept: addDays(utcDay(dependencies.now()), -keepDays),
      current: currentSnapshot(dataDir),
    })
  if (dryRun || superfluous().length === 0) return superfluous()
  return await underLock(dependencies.config, () => {
    const removed = superfluous()
    for (const id of removed) {
      recordPublished(dataDir, id)
      recordPruned(dataDir, id, dependencies.now())
      removeSnapshot(dataDir, id)
    }
    return removed
  })
}

/**
 * The removable snapshots: computed before the day `oldestKept`, not the last of their UTC month, not current.
 * @param ids all identifiers, oldest first.
 */
export function superfluousSnapshots(
  ids: readonly string[],
  { oldestKept, current }: { readonly oldestKept: string; readonly current: string | undefined },
): string[] {
  const lastOfMonth = new Map(ids.map((id) => [id.slice(0, 6), id]))
  return ids.filter((id) => {
    const asOf = asOfFromId(id)
    return (
      asOf !== undefined &&
      utcDay(asOf) < oldestKept &&
      id !== current &&
      lastOfMonth.get(id.slice(0, 6)) !== id
    )
  })
}
