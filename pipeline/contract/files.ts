/** Paths of snapshots, in DATA_DIR and in the API. */
import { chmodSync, existsSync, lstatSync, mkdirSync, readlinkSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The DuckDB file of a snapshot. */
export const SNAPSHOT_FILE = 'app-rankings.duckdb'

/**
 * The description of a snapshot in Croissant. No checksum lists it: over HTTP it has whole addresses instead of its relative
 * ones.
 */
export const CROISSANT_FILE = 'croissant.json'

/** The tables with a folder of monthly files, `month=YYYY-MM.parquet`. */
export const MONTHLY_TABLES = ['app_daily', 'model_daily'] as const

/** Path of the snapshots and their files in the API (CONTRACT 4.6). */
export const SNAPSHOTS_PATH = '/api/v1/datasets/app-rankings/snapshots'

/** Folder of the snapshots and the pointer to the newest, relative to DATA_DIR (CONTRACT 8). */
export const SNAPSHOTS_FOLDER = 'snapshots'
export const CURRENT_POINTER = 'current'

/** Folder of the raw input and file of the service's store, relative to DATA_DIR. */
export const RAW_FOLDER = 'raw'
export const STORE_FILE = 'service.sqlite'

/** The private database of the nightly run, relative to DATA_DIR; a backup has none. */
export const WAREHOUSE_FILE = 'warehouse.duckdb'

/** Folder inside SNAPSHOTS_FOLDER with a file `<id>.json` per snapshot ever published (CONTRACT 4.6). */
export const RECORDS_FOLDER = 'records'

/** Makes DATA_DIR, with the folders above it, open to readers: only published files in it are. */
export function makeDataFolder(path: string): void {
  // Recursive mkdir never returns in a file system without new folders, such as /proc.
  if (!existsSync(dirname(path))) makeDataFolder(dirname(path))
  const umask = process.umask(0o022)
  try {
    mkdirSync(path)
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return
    const target = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && readlinkSync(path)
    throw target ? new Error(`${path} is a link to ${target}, which does not exist: mount its disk`) : error
  } finally {
    process.umask(umask)
  }
}

/** Lets every user read a published file or list a folder, whatever the umask. */
export function makePublic(path: string): void {
  chmodSync(path, statSync(path).isDirectory() ? 0o755 : 0o644)
}
