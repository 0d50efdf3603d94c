/** The data files of a bundle. */
import type { FileFacts } from './checksums.ts'
import type { DescribedTable } from './description.ts'
import type { FileFormat } from './tables.ts'

/** A file with the rows of a table, or the rows of one month. */
export type TableFile = FileFacts & {
  readonly table: DescribedTable
  readonly format: FileFormat
  readonly rows: number
  /** Month of a partition: `YYYY-MM`. */
  readonly month?: string
  /** Fingerprint of a partition: hash of its rows and of how they are written. */
  readonly fingerprint?: string
  /** Whether the previous snapshot has the same partition. */
  readonly isReused?: boolean
}

/** The DuckDB file, which holds all tables, or the file of one table. */
export type DataFile = (FileFacts & { readonly format: 'duckdb' }) | TableFile
