/** The tables of a snapshot that are published as files, and their keys. */
import { MONTHLY_TABLES } from '../contract/files.ts'

export const FILE_FORMATS = ['parquet', 'csv'] as const
export type FileFormat = (typeof FILE_FORMATS)[number]

/** A public table. */
export type BundledTable = {
  readonly name: string
  readonly title: string
  /** Primary key; never null. */
  readonly primaryKey?: readonly string[]
}

/** The published tables, the most wanted first. */
export const BUNDLED_TABLES: readonly BundledTable[] = [
  { name: 'rankings', title: 'Rankings' },
  { name: 'app_daily', title: 'Usage per day and app', primaryKey: ['day', 'app_id'] },
  { name: 'model_daily', title: 'Usage per day and model', primaryKey: ['day', 'model_permaslug'] },
  { name: 'apps', title: 'Apps', primaryKey: ['app_id'] },
  { name: 'coverage', title: 'Coverage', primaryKey: ['day'] },
  { name: 'restatements', title: 'Restatements', primaryKey: ['as_of', 'day', 'cause'] },
]

/** Whether a table has a Parquet file per month, and no other file. */
export function isMonthly({ name }: Pick<BundledTable, 'name'>): boolean {
  return MONTHLY_TABLES.some((monthly) => monthly === name)
}

/** Names of a table's files, or the pattern of its months' names. */
export function fileNames(table: BundledTable): readonly string[] {
  return isMonthly(table)
    ? [`${table.name}/*.parquet`]
    : FILE_FORMATS.map((format) => `${table.name}.${format}`)
}
