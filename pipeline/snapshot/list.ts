/** The snapshots on disk and the pointer to the newest (CONTRACT 8). */
import { existsSync, globSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { asOfFromId } from '../contract/calendar.ts'
import { CURRENT_POINTER, SNAPSHOTS_FOLDER } from '../contract/files.ts'
import { UsageError } from '../program/program.ts'
import { syncToDisk } from './durable-file.ts'
import { recordOf } from './records.ts'
import { isWhole } from './verify.ts'

/** Prefix of a folder in which a snapshot is being built. */
export const BUILD_PREFIX = '.building-'

/** Prefix of a snapshot's folder that is being removed. */
const REMOVED_PREFIX = '.pruned-'

/** Prefix of a link that will become the pointer. */
const ASIDE_PREFIX = `.${CURRENT_POINTER}-`

/** Identifiers of the retained snapshots, oldest first; none if the folder does not exist. */
export function listSnapshots(dataDir: string): string[] {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => asOfFromId(name) !== undefined)
    .toSorted()
}

/** The error for an identifier that names no retained snapshot. */
export function noSuchSnapshot(dataDir: string, id: string): UsageError {
  const { retracted, pruned_at } = recordOf(dataDir, id) ?? {}
  const newest = listSnapshots(dataDir).slice(-5).join(', ') || 'none'
  const reason = retracted
    ? `Snapshot ${id} was retracted at ${retracted.at}: ${retracted.reason.replace(/\.$/, '')}`
    : pruned_at === undefined
      ? `There is no snapshot "${id}"`
      : `Snapshot ${id} was pruned at ${pruned_at}`
  return new UsageError(`${reason}. The newest are: ${newest}`)
}

/** Removes a snapshot; the first step renames it, so a half-removed folder never looks like a snapshot. */
export function removeSnapshot(dataDir: string, id: string): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const aside = join(folder, `${REMOVED_PREFIX}${id}`)
  renameSync(join(folder, id), aside)
  rmSync(aside, { recursive: true })
}

/**
 * The identifier that the pointer leads to; undefined if there is no pointer yet.
 * @throws UsageError if it is not a link, and so can neither be read nor switched.
 */
export function currentSnapshot(dataDir: string): string | undefined {
  const pointer = join(dataDir, CURRENT_POINTER)
  try {
    return basename(readlinkSync(pointer))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EINVAL')) return undefined
    throw new UsageError(
      `${pointer} is not a link to the newest snapshot; it becomes a folder where DATA_DIR is copied with its links ` +
        'followed. Remove it (its files lie in snapshots/ too) and run again; cp -a and rsync -a keep links',
      { cause: error },
    )
  }
}

/**
 * The snapshot that the pointer leads to, or the reason why it leads to none.
 * @throws UsageError if it is not a link.
 */
export function findCurrent(dataDir: string): { readonly id: string } | { readonly reason: string } {
  const snapshots = listSnapshots(dataDir)
  const current = currentSnapshot(dataDir)
  if (current !== undefined && snapshots.includes(current)) return { id: current }
  const newest = snapshots.at(-1)
  if (newest === undefined) return { reason: 'Nothing is published yet' }
  const pointer = join(dataDir, CURRENT_POINTER)
  const reason = `${pointer} leads to no snapshot, though ${newest} is there. The next run repairs the pointer`
  return { reason }
}

/** Switches the pointer atomically: readers see the old snapshot or the new one. */
export function pointAt(dataDir: string, id: string): void {
  const aside = join(dataDir, `${ASIDE_PREFIX}${process.pid}`)
  symlinkSync(join(SNAPSHOTS_FOLDER, id), aside)
  renameSync(aside, join(dataDir, CURRENT_POINTER))
  syncToDisk(dataDir)
}

/** Removes what a killed run left half built, removed, switched or retracted. */
export function removeUnfinished(dataDir: string): void {
  const names = [`${SNAPSHOTS_FOLDER}/{${BUILD_PREFIX},${REMOVED_PREFIX}}*`, `${ASIDE_PREFIX}*`]
  for (const name of globSync(names, { cwd: dataDir })) rmSync(join(dataDir, name), { recursive: true })
  for (const id of listSnapshots(dataDir)) {
    if (recordOf(dataDir, id)?.retracted !== undefined) removeWithdrawn(dataDir, id)
  }
}

/** Removes the files of a snapshot with a recorded retraction, once the pointer leads elsewhere. */
export function removeWithdrawn(dataDir: string, id: string): void {
  const next = currentWithout(dataDir, id)
  if (next === undefined) rmSync(join(dataDir, CURRENT_POINTER), { force: true })
  else if (next !== currentSnapshot(dataDir)) pointAt(dataDir, next)
  if (existsSync(join(dataDir, SNAPSHOTS_FOLDER, id))) removeSnapshot(dataDir, id)
}

/** The pointer's target once `id` is gone: its present target, otherwise the newest snapshot; undefined if none is left. */
export function currentWithout(dataDir: string, id: string): string | undefined {
  const left = listSnapshots(dataDir).filter((other) => other !== id)
  const current = currentSnapshot(dataDir)
  return left.find((other) => other === current) ?? left.at(-1)
}

/**
 * If the pointer leads to no snapshot (after a backup without links, for instance), points it at the newest whole one.
 * Returns that identifier, or undefined if nothing was to be done.
 */
export function repairPointer(dataDir: string): string | undefined {
  if ('id' in findCurrent(dataDir)) return undefined
  const newest = listSnapshots(dataDir).findLast((id) => isWhole(dataDir, id))
  if (newest !== undefined) pointAt(dataDir, newest)
  return newest
}
