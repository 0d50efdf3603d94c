/** The files of a bundle that hold data. */
import type { FileFacts } from './checksums.ts'
import type { DescribedTable } from './description.ts'
import type { FileFormat } from './tables.ts'

/** A file with the rows of a table, all of them or those of one month. */
export type TableFile = FileFacts & {
  readonly table: DescribedTable
  readonly format: FileFormat
  readonly rows: number
  /** Set in a partition: `YYYY-MM`. */
  readonly month?: string
  /** Set in a partition: hash of its rows and of what decides how they are written. */
  readonly fingerprint?: string
  /** Set in a partition: whether the snapshot before has the same file. */
  readonly isReused?: boolean
}

/** The DuckDB file, which holds all tables, or the file of one table. */
export type DataFile = (FileFacts & { readonly format: 'duckdb' }) | TableFile
