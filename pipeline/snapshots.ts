/** The snapshots on disk and the pointer to the newest (CONTRACT 8). */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { CURRENT_POINTER, SNAPSHOTS_FOLDER, asOfFromId } from './contract.ts'

/** Prefix of a folder in which a snapshot is being built; never a snapshot. */
export const BUILD_PREFIX = '.building-'

/** Prefix of a snapshot's folder that is being removed. */
export const PRUNED_PREFIX = '.pruned-'

/** Identifiers of the whole snapshots, oldest first; none where there is no folder yet. */
export function listSnapshots(dataDir: string): string[] {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => asOfFromId(name) !== undefined)
    .toSorted()
}

/** The identifier the pointer leads to; undefined when there is none yet. */
export function currentSnapshot(dataDir: string): string | undefined {
  try {
    return basename(readlinkSync(join(dataDir, CURRENT_POINTER)))
  } catch {
    return undefined
  }
}

/** Switches the pointer in one step; readers see the old snapshot or the new one, never none. */
export function pointAt(dataDir: string, id: string): void {
  const aside = join(dataDir, `.${CURRENT_POINTER}-${process.pid}`)
  rmSync(aside, { force: true })
  symlinkSync(join(SNAPSHOTS_FOLDER, id), aside)
  renameSync(aside, join(dataDir, CURRENT_POINTER))
  syncToDisk(dataDir)
}

/** Removes what a killed run left half built or half removed. */
export function removeUnfinished(dataDir: string): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  for (const name of readdirSync(folder)) {
    if (name.startsWith(BUILD_PREFIX) || name.startsWith(PRUNED_PREFIX))
      rmSync(join(folder, name), { recursive: true })
  }
}

/** Makes a file, or the names in a folder, survive a power cut. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
