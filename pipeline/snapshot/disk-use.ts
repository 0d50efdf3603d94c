/** Disk use of an installation by part, and its growth per night. */
import { existsSync, globSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { RAW_FOLDER, SNAPSHOTS_FOLDER, STORE_FILE } from '../contract/files.ts'
import { WAREHOUSE_FILE } from '../duckdb/warehouse.ts'

/** Bytes of each part; a file that several snapshots share counts once. */
export type DiskUse = {
  readonly raw: number
  readonly snapshots: number
  readonly warehouse: number
  readonly store: number
  readonly other: number
  /** Growth per night in bytes: the mean over the newest days of usage and the newest snapshots. */
  readonly growth: { readonly raw: number; readonly snapshots: number }
}
/** Nights in the mean. */
/** So many nights are looked at for the growth. */
const NIGHTS = 7

/** @param ids identifiers of the snapshots, oldest first. */
export function diskUse(dataDir: string, ids: readonly string[]): DiskUse {
  const parts = { raw: 0, snapshots: 0, warehouse: 0, store: 0, other: 0 }
  const names = existsSync(dataDir) ? readdirSync(dataDir) : []
  for (const name of names) parts[partOf(name)] += total(sizes(join(dataDir, name)))
  const days = globSync('usage/date=*', { cwd: join(dataDir, RAW_FOLDER) })
    .toSorted()
    .slice(-NIGHTS)
  const ofDays = days.map((day) => total(sizes(join(dataDir, RAW_FOLDER, day))))
  return { ...parts, growth: { raw: mean(ofDays), snapshots: mean(addedBySnapshots(dataDir, ids)) } }
}

/** Bytes of the files of these snapshots; a file that several of them share counts once. */
export function bytesOfSnapshots(dataDir: string, ids: readonly string[]): number {
  return total(new Map(ids.flatMap((id) => [...sizes(join(dataDir, SNAPSHOTS_FOLDER, id))])))
}

function partOf(name: string): Exclude<keyof DiskUse, 'growth'> {
  if (name === RAW_FOLDER) return 'raw'
  if (name === SNAPSHOTS_FOLDER) return 'snapshots'
  if (name.startsWith(WAREHOUSE_FILE)) return 'warehouse'
  return name.startsWith(STORE_FILE) ? 'store' : 'other'
}

/** Bytes that each of the newest snapshots does not share with its predecessor; the oldest has none and is left out. */
function addedBySnapshots(dataDir: string, ids: readonly string[]): number[] {
  const newest = ids.slice(-NIGHTS - 1).map((id) => sizes(join(dataDir, SNAPSHOTS_FOLDER, id)))
  return newest.slice(1).map((files, index) => {
    const former = newest[index]
    return total(new Map([...files].filter(([inode]) => former?.has(inode) !== true)))
  })
}

/** Sizes of a file, or of the files below a folder, by inode. Links are not followed. */
function sizes(path: string): ReadonlyMap<number, number> {
  const found = namesBelow(path).flatMap(
    (name) => lstatSync(join(path, name), { throwIfNoEntry: false }) ?? [],
  )
  return new Map(found.filter((file) => file.isFile()).map(({ ino, size }) => [ino, size]))
}

function namesBelow(path: string): string[] {
  try {
    return lstatSync(path).isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : ['']
  } catch {
    // A concurrent run may remove the file; its space is free again.
    return []
  }
}

function total(files: ReadonlyMap<number, number>): number {
  return [...files.values()].reduce((sum, size) => sum + size, 0)
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : Math.round(values.reduce((sum, value) => sum + value, 0) / values.length)
}
