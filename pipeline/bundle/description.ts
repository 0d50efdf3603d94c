/**
 * The description that every file of the bundle uses, read from the snapshot itself: the row of `meta` and the comments on
 * tables and columns. No column is described a second time.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { snapshotId } from '../contract/calendar.ts'
import { MONTHLY_TABLES, SNAPSHOTS_PATH } from '../contract/files.ts'
import { snapshotRecordSchema } from '../contract/snapshot-record.ts'
import { countSchema, readRow, readRows } from '../duckdb/statements.ts'

/** The formats of a table's files. */
export const FILE_FORMATS = ['parquet', 'csv'] as const

/** A public table. */
type BundledTable = {
  readonly name: string
  readonly title: string
  /** Primary key; never null. */
  readonly primaryKey?: readonly string[]
}

/** The published tables, the most wanted first. */
const BUNDLED_TABLES: readonly BundledTable[] = [
  { name: 'rankings', title: 'Rankings' },
  { name: 'app_daily', title: 'Usage per day and app', primaryKey: ['day', 'app_id'] },
  { name: 'model_daily', title: 'Usage per day and model', primaryKey: ['day', 'model_permaslug'] },
  { name: 'apps', title: 'Apps', primaryKey: ['app_id'] },
  { name: 'categories', title: 'Categories', primaryKey: ['subcategory'] },
  { name: 'coverage', title: 'Coverage', primaryKey: ['day'] },
  { name: 'restatements', title: 'Restatements', primaryKey: ['as_of', 'day', 'cause'] },
  { name: 'meta', title: 'About the snapshot' },
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

/** The facts of the record, and what only texts state. */
const metaRow = snapshotRecordSchema
  .omit({ id: true, files: true, pruned_at: true, retracted: true })
  .required()
  .extend({
    licence: z.string(),
    licence_url: z.string(),
    sources: z.string().nullable(),
    comparability: z.string(),
    days_restated: countSchema,
    rows: z.record(z.string(), countSchema),
  })

const columnRow = z.object({
  table_name: z.string(),
  table_comment: z.string(),
  name: z.string(),
  /** DuckDB type. */
  type: z.string(),
  description: z.string(),
})

export type Field = z.infer<typeof columnRow>

export type DescribedTable = BundledTable & {
  readonly description: string
  readonly rows: number
  readonly fields: readonly Field[]
}

export type Description = {
  readonly meta: z.infer<typeof metaRow>
  readonly snapshot: string
  /** Semantic version of the schema, with the snapshot as build. */
  readonly version: string
  /** Addresses of the dataset and of this snapshot's files, without a slash at the end. */
  readonly homepage: string
  readonly address: string
  readonly tables: readonly DescribedTable[]
}

export const TITLE = 'App rankings'

/** The facts of the attached database `snapshot`. */
export function readMeta(connection: DuckDBConnection): Promise<Description['meta']> {
  return readRow(connection, 'bundle.sql#meta', metaRow)
}

/**
 * Describes the attached database `snapshot`.
 * @param publicUrl public address of the service.
 */
export async function describeSnapshot(
  connection: DuckDBConnection,
  asOf: Date,
  publicUrl: string,
): Promise<Description> {
  const meta = await readMeta(connection)
  const columns = await readRows(connection, 'bundle.sql#columns', columnRow)
  const snapshot = snapshotId(asOf)
  return {
    meta,
    snapshot,
    version: `${meta.version.replace(/^v/, '')}.0.0+${snapshot}`,
    homepage: `${publicUrl}/`,
    address: `${publicUrl}${SNAPSHOTS_PATH}/${snapshot}`,
    tables: BUNDLED_TABLES.map((table) => {
      const fields = columns.filter(({ table_name }) => table_name === table.name)
      const description = fields[0]?.table_comment ?? ''
      return { ...table, description, fields, rows: meta.rows[table.name] ?? 0 }
    }),
  }
}

/** The BibTeX entry. */
export function bibtex({ meta, snapshot, address }: Description): string {
  return [
    `@misc{app_rankings_${snapshot},`,
    `  title        = {{${TITLE}}},`,
    `  author       = {{${meta.publisher.replaceAll(/[{}&%$#_]/g, '\\$&')}}},`,
    `  year         = {${meta.as_of.slice(0, 4)}},`,
    `  howpublished = {\\url{${address}}},`,
    `  note         = {As of ${meta.as_of}, ${meta.licence}}`,
    '}',
  ].join('\n')
}
