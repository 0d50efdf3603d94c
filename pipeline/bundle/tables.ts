/** What of a snapshot is handed out as files of its own, and under which keys its tables stand. */
import { DAYS_FOLDER } from '../contract/files.ts'

export type FileFormat = 'parquet' | 'csv'

/** A public table with the files made from it. */
export type BundledTable = {
  readonly name: string
  readonly title: string
  readonly formats: readonly FileFormat[]
  /** Columns that identify a row, none of them ever null. */
  readonly primaryKey?: readonly string[]
  /** Columns that refer to the column of the same name in the table `apps`. */
  readonly refersToApps?: boolean
}

/** The tables of the bundle, the ones most people want first. */
export const BUNDLED_TABLES: readonly BundledTable[] = [
  { name: 'rankings', title: 'Rankings', formats: ['parquet', 'csv'], refersToApps: true },
  {
    name: DAYS_FOLDER,
    title: 'Usage per day and app',
    formats: ['parquet'],
    primaryKey: ['day', 'app_id'],
    refersToApps: true,
  },
  { name: 'apps', title: 'Apps', formats: ['parquet', 'csv'], primaryKey: ['app_id'] },
  { name: 'coverage', title: 'Coverage', formats: ['csv'], primaryKey: ['day'] },
  { name: 'restatements', title: 'Restatements', formats: ['csv'], primaryKey: ['as_of', 'day', 'cause'] },
]

/** Name of the file a table is written to, or the pattern of its names where each month has one. */
export function fileName({ name }: BundledTable, format: FileFormat): string {
  return name === DAYS_FOLDER ? `${name}/month=*.${format}` : `${name}.${format}`
}
