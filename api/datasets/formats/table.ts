import type { Columns } from '../../../pipeline/contract/dataset.ts'

/** Rows as they are encoded: a value for each column, a bigint for an integer, else a text. */
export interface Table {
  readonly columns: Columns
  readonly rows: readonly Readonly<Record<string, bigint | string>>[]
}

/** What a file says of itself when it travels alone. */
export type FileMetadata = Readonly<Record<string, string>>

/** The texts of a column. */
export function texts({ rows }: Table, name: string): string[] {
  return rows.map((row) => String(row[name]))
}

/** The values of a column of whole numbers. */
export function integers({ rows }: Table, name: string): bigint[] {
  return rows.map((row) => BigInt(row[name] ?? 0))
}
