/** Where snapshots lie, in DATA_DIR and under the API. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'

/** The DuckDB file of a snapshot. */
export const SNAPSHOT_FILE = 'app-rankings.duckdb'

/** The tables of a snapshot with a folder of their own: files `month=YYYY-MM.parquet` and `month=YYYY-MM.csv.gz` per month. */
export const MONTHLY_TABLES = ['app_daily', 'model_daily'] as const

/** Path under which the API lists the snapshots and hands out their files (CONTRACT 4.6). */
export const SNAPSHOTS_PATH = '/api/v1/datasets/app-rankings/snapshots'

/** Folder of the snapshots and the pointer to the newest, relative to DATA_DIR (CONTRACT 8). */
export const SNAPSHOTS_FOLDER = 'snapshots'
export const CURRENT_POINTER = 'current'

/** Folder of the raw input and file of the service's store, relative to DATA_DIR. */
export const RAW_FOLDER = 'raw'
export const STORE_FILE = 'service.sqlite'

/** Folder inside SNAPSHOTS_FOLDER with a file `<id>.json` per snapshot ever published (CONTRACT 4.6). */
export const RECORDS_FOLDER = 'records'

/** Folder inside SNAPSHOTS_FOLDER with a file `<id>.json` per withdrawn snapshot (CONTRACT 4.6). */
export const RETRACTIONS_FOLDER = 'retracted'

/** Why a snapshot was withdrawn; its data is gone, this stays. */
export const retractionSchema = z.strictObject({
  id: z.string(),
  as_of: z.iso.datetime({ precision: 0 }),
  reason: z.string(),
  retracted_at: z.iso.datetime({ precision: 0 }),
})
export type Retraction = z.infer<typeof retractionSchema>

/** Makes DATA_DIR, with the folders above it. */
export function makeDataFolder(path: string): void {
  // Where the system makes no folders, as in /proc, Node's recursive way never ends: it is for a folder that is there.
  if (existsSync(path)) return void mkdirSync(path, { recursive: true })
  makeDataFolder(dirname(path))
  try {
    mkdirSync(path)
  } catch (error) {
    // Another process may have been quicker.
    if (!existsSync(path)) throw error
  }
}
