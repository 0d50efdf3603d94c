/** What of a snapshot is handed out as files of its own, and under which keys its tables stand. */

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

/** The largest table by far; its file is written month by month. */
export const DAYS_TABLE = 'app_daily'

/** The tables of the bundle, the ones most people want first. */
export const BUNDLED_TABLES: readonly BundledTable[] = [
  { name: 'rankings', title: 'Rankings', formats: ['parquet', 'csv'], refersToApps: true },
  {
    name: DAYS_TABLE,
    title: 'Usage per day and app',
    formats: ['parquet'],
    primaryKey: ['day', 'app_id'],
    refersToApps: true,
  },
  { name: 'apps', title: 'Apps', formats: ['parquet', 'csv'], primaryKey: ['app_id'] },
  { name: 'coverage', title: 'Coverage', formats: ['csv'], primaryKey: ['day'] },
  { name: 'restatements', title: 'Restatements', formats: ['csv'], primaryKey: ['as_of', 'day'] },
]

/** Name of the file a table is written to. */
export function fileName(table: BundledTable, format: FileFormat): string {
  return `${table.name}.${format}`
}
