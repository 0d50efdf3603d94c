import type { Columns } from '../../../pipeline/contract/dataset.ts'

/** Rows for the encoders: a value per column, a bigint for an integer, otherwise a text. */
export interface Table {
  readonly columns: Columns
  readonly rows: readonly Readonly<Record<string, bigint | string>>[]
}

/** Metadata inside a file. */
export type FileMetadata = Readonly<Record<string, string>>

export function texts({ rows }: Table, name: string): string[] {
  return rows.map((row) => String(row[name]))
}

export function integers({ rows }: Table, name: string): bigint[] {
  return rows.map((row) => BigInt(row[name] ?? 0))
}
