/** What of a snapshot is handed out as files of its own, and under which keys its tables stand. */
import { MONTHLY_TABLES } from '../contract/files.ts'

export type FileFormat = 'parquet' | 'csv' | 'csv.gz'

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
    name: 'app_daily',
    title: 'Usage per day and app',
    formats: ['parquet', 'csv.gz'],
    primaryKey: ['day', 'app_id'],
    refersToApps: true,
  },
  {
    name: 'model_daily',
    title: 'Usage per day and model',
    formats: ['parquet', 'csv.gz'],
    primaryKey: ['day', 'model_permaslug'],
  },
  { name: 'apps', title: 'Apps', formats: ['parquet', 'csv'], primaryKey: ['app_id'] },
  { name: 'coverage', title: 'Coverage', formats: ['csv'], primaryKey: ['day'] },
  { name: 'restatements', title: 'Restatements', formats: ['csv'], primaryKey: ['as_of', 'day', 'cause'] },
]

/** Whether a table has a file per month. */
export function isMonthly({ name }: Pick<BundledTable, 'name'>): boolean {
  return MONTHLY_TABLES.some((monthly) => monthly === name)
}

/** Name of the file a table is written to, or the pattern of its names where each month has one. */
export function fileName(table: BundledTable, format: FileFormat): string {
  return isMonthly(table) ? `${table.name}/month=*.${format}` : `${table.name}.${format}`
}
