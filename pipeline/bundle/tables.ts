/** The tables of a snapshot that are published as files, and their keys. */
import { MONTHLY_TABLES } from '../contract/files.ts'

export type FileFormat = 'parquet' | 'csv' | 'csv.gz'

/** A public table and its files. */
export type BundledTable = {
  readonly name: string
  readonly title: string
  readonly formats: readonly FileFormat[]
  /** Primary key; never null. */
  readonly primaryKey?: readonly string[]
  /** Foreign keys to the column of the same name in the table `apps`. */
  readonly refersToApps?: boolean
}

/** The published tables, the most wanted first. */
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

/** Whether a table is partitioned by month. */
export function isMonthly({ name }: Pick<BundledTable, 'name'>): boolean {
  return MONTHLY_TABLES.some((monthly) => monthly === name)
}

/** Name of a table's file, or the pattern of its partitions' names. */
export function fileName(table: BundledTable, format: FileFormat): string {
  return isMonthly(table) ? `${table.name}/month=*.${format}` : `${table.name}.${format}`
}
