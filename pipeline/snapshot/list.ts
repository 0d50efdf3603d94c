/** The snapshots on disk and the pointer to the newest (CONTRACT 8). */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { UsageError } from '../contract/program.ts'
import { asOfFromId } from '../contract/calendar.ts'
import {
  CURRENT_POINTER,
  RECORDS_FOLDER,
  RETRACTIONS_FOLDER,
  SNAPSHOTS_FOLDER,
  retractionSchema,
} from '../contract/files.ts'
import type { Retraction } from '../contract/files.ts'
import { readRecord } from '../contract/snapshot-record.ts'
import { syncToDisk, writeInOneStep } from './durable-file.ts'

/** Prefix of a folder in which a snapshot is being built; never a snapshot. */
export const BUILD_PREFIX = '.building-'

/** Prefix of a snapshot's folder that is being removed. */
const PRUNED_PREFIX = '.pruned-'

/** Prefix of a link that is about to become the pointer. */
const ASIDE_PREFIX = `.${CURRENT_POINTER}-`

/** Identifiers of the whole snapshots that are not retracted, oldest first; none where there is no folder yet. */
export function listSnapshots(dataDir: string): string[] {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  if (!existsSync(folder)) return []
  const retracted = new Set(retractedIds(dataDir))
  return readdirSync(folder)
    .filter((name) => asOfFromId(name) !== undefined && !retracted.has(name))
    .toSorted()
}

/** The error for an identifier that names no snapshot. */
export function noSuchSnapshot(dataDir: string, id: string): UsageError {
  const newest = listSnapshots(dataDir).slice(-5).join(', ') || 'none'
  return new UsageError(`There is no snapshot "${id}". The newest are: ${newest}`)
}

/** Identifiers of the retracted snapshots, oldest first; also of those whose record cannot be read. */
export function retractedIds(dataDir: string): string[] {
  return jsonNames(join(dataDir, SNAPSHOTS_FOLDER, RETRACTIONS_FOLDER))
}

/** The names of the JSON files in a folder, without their ending, in alphabetical order. */
function jsonNames(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => /^[^.].*\.json$/.test(name))
    .map((name) => name.replace(/\.json$/, ''))
    .toSorted()
}

/** The retracted snapshots whose record can be read, oldest first. */
export function listRetractions(dataDir: string): Retraction[] {
  return retractedIds(dataDir).flatMap((id) => readable(() => readRetraction(dataDir, id)) ?? [])
}

/** The records of snapshots and retractions that cannot be read, as paths in DATA_DIR; they are left out elsewhere. */
export function unreadableRecords(dataDir: string): string[] {
  const snapshots = join(dataDir, SNAPSHOTS_FOLDER)
  const retractions = retractedIds(dataDir).filter(
    (id) => readable(() => readRetraction(dataDir, id)) === undefined,
  )
  const records = jsonNames(join(snapshots, RECORDS_FOLDER)).filter(
    (id) => readable(() => readRecord(snapshots, id)) === undefined,
  )
  return [
    ...retractions.map((id) => join(SNAPSHOTS_FOLDER, RETRACTIONS_FOLDER, `${id}.json`)),
    ...records.map((id) => join(SNAPSHOTS_FOLDER, RECORDS_FOLDER, `${id}.json`)),
  ]
}

function readRetraction(dataDir: string, id: string): Retraction {
  const path = join(dataDir, SNAPSHOTS_FOLDER, RETRACTIONS_FOLDER, `${id}.json`)
  return retractionSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
}

/** What `read` gives; undefined where it cannot be read. */
export function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Records a retraction for good. */
export function recordRetraction(dataDir: string, retraction: Retraction): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER, RETRACTIONS_FOLDER)
  mkdirSync(folder, { recursive: true })
  writeInOneStep(join(folder, `${retraction.id}.json`), `${JSON.stringify(retraction, null, 2)}\n`)
}

/** Removes a snapshot, out of sight in one step first: a half-removed folder never looks like one. */
export function removeSnapshot(dataDir: string, id: string): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const aside = join(folder, `${PRUNED_PREFIX}${id}`)
  renameSync(join(folder, id), aside)
  rmSync(aside, { recursive: true })
}

/**
 * The identifier the pointer leads to; undefined when there is none yet.
 * @throws UsageError when it is no link, and so can neither be read nor switched.
 */
export function currentSnapshot(dataDir: string): string | undefined {
  const pointer = join(dataDir, CURRENT_POINTER)
  try {
    return basename(readlinkSync(pointer))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EINVAL')) return undefined
    throw new UsageError(
      `${pointer} is no link to the newest snapshot; it becomes a folder where DATA_DIR is copied with its links ` +
        'followed. Remove it (its files lie in snapshots/ too) and run again; cp -a and rsync -a keep links',
      { cause: error },
    )
  }
}

/**
 * The snapshot that the pointer leads to, or what to say where it leads to none.
 * @throws UsageError when it is no link.
 */
export function findCurrent(dataDir: string): { readonly id: string } | { readonly reason: string } {
  const snapshots = listSnapshots(dataDir)
  const current = currentSnapshot(dataDir)
  if (current !== undefined && snapshots.includes(current)) return { id: current }
  const newest = snapshots.at(-1)
  if (newest === undefined) return { reason: 'Nothing is published yet' }
  const pointer = join(dataDir, CURRENT_POINTER)
  return { reason: `${pointer} leads to no snapshot, though ${newest} is there. The next run mends that` }
}

/** Switches the pointer in one step; readers see the old snapshot or the new one, never none. */
export function pointAt(dataDir: string, id: string): void {
  const aside = join(dataDir, `${ASIDE_PREFIX}${process.pid}`)
  symlinkSync(join(SNAPSHOTS_FOLDER, id), aside)
  renameSync(aside, join(dataDir, CURRENT_POINTER))
  syncToDisk(dataDir)
}

/** Removes what a killed run left half built, half removed, half switched or retracted. */
export function removeUnfinished(dataDir: string): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const unfinished = unfinishedRetractions(dataDir)
  for (const name of readdirSync(folder)) {
    if (name.startsWith(BUILD_PREFIX) || name.startsWith(PRUNED_PREFIX))
      rmSync(join(folder, name), { recursive: true })
  }
  for (const name of readdirSync(dataDir)) if (name.startsWith(ASIDE_PREFIX)) rmSync(join(dataDir, name))
  if (unfinished.length > 0) switchPointer(dataDir, rightfulCurrent(dataDir))
  for (const { id } of unfinished) {
    if (existsSync(join(folder, id))) removeSnapshot(dataDir, id)
  }
}

/** The retractions of which more is left than their record: the files, or the pointer that leads to them. */
export function unfinishedRetractions(dataDir: string): Retraction[] {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const current = currentSnapshot(dataDir)
  return listRetractions(dataDir).filter(
    ({ id }) =>
      id === current || [id, `${PRUNED_PREFIX}${id}`].some((name) => existsSync(join(folder, name))),
  )
}

/**
 * The snapshot the pointer should lead to once `without` is gone: the one it leads to, or else the newest; undefined
 * when none is left.
 */
export function rightfulCurrent(dataDir: string, without?: string): string | undefined {
  const left = listSnapshots(dataDir).filter((id) => id !== without)
  const current = currentSnapshot(dataDir)
  return left.find((id) => id === current) ?? left.at(-1)
}

/**
 * Points at the newest snapshot that `isWhole`, where the pointer leads to none, as after a backup that did not keep
 * links; gives its identifier, or undefined where there was nothing to do.
 */
export function mendPointer(dataDir: string, isWhole: (id: string) => boolean): string | undefined {
  if ('id' in findCurrent(dataDir)) return undefined
  const newest = listSnapshots(dataDir).findLast(isWhole)
  if (newest !== undefined) pointAt(dataDir, newest)
  return newest
}

function switchPointer(dataDir: string, id: string | undefined): void {
  if (id === undefined) rmSync(join(dataDir, CURRENT_POINTER), { force: true })
  else if (id !== currentSnapshot(dataDir)) pointAt(dataDir, id)
}
