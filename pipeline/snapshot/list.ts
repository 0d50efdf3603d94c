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
import { UsageError } from '../program/program.ts'
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

/** Prefix of a folder in which a snapshot is being built. */
export const BUILD_PREFIX = '.building-'

/** Prefix of a snapshot's folder that is being removed. */
const PRUNED_PREFIX = '.pruned-'

/** Prefix of a link that will become the pointer. */
const ASIDE_PREFIX = `.${CURRENT_POINTER}-`

/** Identifiers of the complete, retained snapshots, oldest first; none if the folder does not exist. */
export function listSnapshots(dataDir: string): string[] {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  if (!existsSync(folder)) return []
  const retracted = new Set(retractedIds(dataDir))
  return readdirSync(folder)
    .filter((name) => asOfFromId(name) !== undefined && !retracted.has(name))
    .toSorted()
}

/** The error for an identifier that names no retained snapshot. */
export function noSuchSnapshot(dataDir: string, id: string): UsageError {
  const newest = listSnapshots(dataDir).slice(-5).join(', ') || 'none'
  return new UsageError(`${whyNotRetained(dataDir, id)}. The newest are: ${newest}`)
}

function whyNotRetained(dataDir: string, id: string): string {
  const retraction = retractionOf(dataDir, id)
  if (retraction !== undefined)
    return `Snapshot ${id} was retracted at ${retraction.retracted_at}: ${retraction.reason}`
  const pruned = timeOfPruning(dataDir, id)
  return pruned === undefined ? `There is no snapshot "${id}"` : `Snapshot ${id} was pruned at ${pruned}`
}

/** When a snapshot was pruned; undefined if it was not. */
export function timeOfPruning(dataDir: string, id: string): string | undefined {
  return readable(() => readRecord(join(dataDir, SNAPSHOTS_FOLDER), id))?.pruned_at
}

/** Identifiers of the retracted snapshots, oldest first, including those with an unreadable record. */
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

/** The retracted snapshots with a readable record, oldest first. */
export function listRetractions(dataDir: string): Retraction[] {
  return retractedIds(dataDir).flatMap((id) => readable(() => readRetraction(dataDir, id)) ?? [])
}

/** The retraction of a snapshot; undefined if there is none, or its record is unreadable. */
export function retractionOf(dataDir: string, id: string): Retraction | undefined {
  return listRetractions(dataDir).find((each) => each.id === id)
}

/** Paths in DATA_DIR of the unreadable records of snapshots and retractions; other functions skip these. */
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

/** The result of `read`; undefined if it throws. */
export function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

export function recordRetraction(dataDir: string, retraction: Retraction): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER, RETRACTIONS_FOLDER)
  mkdirSync(folder, { recursive: true })
  writeInOneStep(join(folder, `${retraction.id}.json`), `${JSON.stringify(retraction, null, 2)}\n`)
}

/** Removes a snapshot; the first step renames it, so a half-removed folder never looks like a snapshot. */
export function removeSnapshot(dataDir: string, id: string): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const aside = join(folder, `${PRUNED_PREFIX}${id}`)
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
  return {
    reason: `${pointer} leads to no snapshot, though ${newest} is there. The next run repairs the pointer`,
  }
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

/** The unfinished retractions: their files are left, or the pointer still leads to them. */
export function unfinishedRetractions(dataDir: string): Retraction[] {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const current = currentSnapshot(dataDir)
  return listRetractions(dataDir).filter(
    ({ id }) =>
      id === current || [id, `${PRUNED_PREFIX}${id}`].some((name) => existsSync(join(folder, name))),
  )
}

/**
 * The pointer's target once `without` is gone: its present target, otherwise the newest snapshot; undefined if none is
 * left.
 */
export function rightfulCurrent(dataDir: string, without?: string): string | undefined {
  const left = listSnapshots(dataDir).filter((id) => id !== without)
  const current = currentSnapshot(dataDir)
  return left.find((id) => id === current) ?? left.at(-1)
}

/**
 * If the pointer leads to no snapshot (after a backup without links, for instance), points it at the newest one that
 * `isWhole`. Returns that identifier, or undefined if nothing was to be done.
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
