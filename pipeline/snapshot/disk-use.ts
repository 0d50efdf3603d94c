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
const NIGHTS = 7

/**
 * @param ids identifiers of the snapshots, oldest first.
 * @returns the parts, and `kept`, the bytes of these snapshots only.
 */
export function diskUse(
  dataDir: string,
  ids: readonly string[],
): { readonly disk: DiskUse; readonly kept: number } {
  const parts = { raw: 0, snapshots: 0, warehouse: 0, store: 0, other: 0 }
  const bySnapshot = new Map(ids.map((id) => [id, sizes(join(dataDir, SNAPSHOTS_FOLDER, id))]))
  for (const name of namesIn(dataDir)) {
    const files =
      name === SNAPSHOTS_FOLDER ? sizesOfSnapshots(dataDir, bySnapshot) : sizes(join(dataDir, name))
    parts[partOf(name)] += total(files)
  }
  const days = globSync('usage/date=*', { cwd: join(dataDir, RAW_FOLDER) })
    .toSorted()
    .slice(-NIGHTS)
  const ofDays = days.map((day) => total(sizes(join(dataDir, RAW_FOLDER, day))))
  const kept = [...bySnapshot.values()]
  return {
    disk: { ...parts, growth: { raw: mean(ofDays), snapshots: mean(addedBySnapshots(kept)) } },
    kept: total(union(kept)),
  }
}

/** The snapshots, already measured, and further files beside them. */
function sizesOfSnapshots(dataDir: string, bySnapshot: ReadonlyMap<string, Sizes>): Sizes {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  return union(namesIn(folder).map((name) => bySnapshot.get(name) ?? sizes(join(folder, name))))
}

function partOf(name: string): Exclude<keyof DiskUse, 'growth'> {
  if (name === RAW_FOLDER) return 'raw'
  if (name === SNAPSHOTS_FOLDER) return 'snapshots'
  if (name.startsWith(WAREHOUSE_FILE)) return 'warehouse'
  return name.startsWith(STORE_FILE) ? 'store' : 'other'
}

/** Bytes that each of the newest snapshots does not share with its predecessor; the oldest has none and is left out. */
function addedBySnapshots(snapshots: readonly Sizes[]): number[] {
  const newest = snapshots.slice(-NIGHTS - 1)
  return newest.slice(1).map((files, index) => {
    const former = newest[index]
    return total(new Map([...files].filter(([inode]) => former?.has(inode) !== true)))
  })
}

/** Sizes of files by inode, so that a shared file counts once. */
type Sizes = ReadonlyMap<number, number>

function union(several: readonly Sizes[]): Sizes {
  return new Map(several.flatMap((files) => [...files]))
}

/** Sizes of a file, or of the files below a folder. Links are not followed. */
function sizes(path: string): Sizes {
  const found = namesBelow(path).flatMap(
    (name) => lstatSync(join(path, name), { throwIfNoEntry: false }) ?? [],
  )
  return new Map(found.filter((file) => file.isFile()).map(({ ino, size }) => [ino, size]))
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}

function namesBelow(path: string): string[] {
  try {
    return lstatSync(path).isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : ['']
  } catch {
    // A concurrent run may remove the file; its space is free again.
    return []
  }
}

function total(files: Sizes): number {
  return [...files.values()].reduce((sum, size) => sum + size, 0)
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : Math.round(values.reduce((sum, value) => sum + value, 0) / values.length)
}
