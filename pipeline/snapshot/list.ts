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
  const newest = listSnapshots(dataDir).slice(-5).join(', ') || 'none'
  return new UsageError(`There is no snapshot "${id}", or its files were removed. The newest are: ${newest}`)
}

/** Removes a snapshot; the first step renames it, so a half-removed folder never looks like a snapshot. */
export function removeSnapshot(dataDir: string, id: string): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const aside = join(folder, `${REMOVED_PREFIX}${id}`)
  renameSync(join(folder, id), aside)
  rmSync(aside, { recursive: true })
}

/**
 * The snapshot that the pointer leads to; undefined if there is no pointer yet, or its snapshot is gone.
 * @throws UsageError if it is not a link, and so can neither be read nor switched.
 */
export function currentSnapshot(dataDir: string): string | undefined {
  const pointer = join(dataDir, CURRENT_POINTER)
  try {
    const id = basename(readlinkSync(pointer))
    return listSnapshots(dataDir).find((other) => other === id)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EINVAL')) return undefined
    throw new UsageError(
      `${pointer} is not a link to the newest snapshot. Remove it (its files lie in snapshots/ too) and run again; ` +
        'cp -a and rsync -a keep links',
      { cause: error },
    )
  }
}

/** What commands say when no snapshot is current. */
export const NONE_CURRENT = 'No snapshot is current; npm run nightly publishes one, or repairs the pointer'

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
  if (currentSnapshot(dataDir) !== undefined) return undefined
  const newest = listSnapshots(dataDir).findLast((id) => isWhole(dataDir, id))
  if (newest !== undefined) pointAt(dataDir, newest)
  return newest
}
