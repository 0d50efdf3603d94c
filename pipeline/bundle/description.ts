/**
 * The description that every file of the bundle uses, read from the snapshot itself: the row of `meta` and the comments on
 * tables and columns. No column is described a second time.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { snapshotId } from '../contract/calendar.ts'
import { SNAPSHOTS_PATH } from '../contract/files.ts'
import { identifier } from '../duckdb/sql-values.ts'
import { countSchema, queryRows, readRow, readRows } from '../duckdb/statements.ts'
import { BUNDLED_TABLES } from './tables.ts'
import type { BundledTable } from './tables.ts'

export type Field = {
  readonly name: string
  /** DuckDB type. */
  readonly type: string
  readonly description: string
  readonly nullable: boolean
}

export type DescribedTable = BundledTable & {
  readonly description: string
  readonly rows: number
  readonly fields: readonly Field[]
}

const metaRow = z.object({
  as_of: z.string(),
  data_through: z.string(),
  first_day: z.string(),
  version: z.string(),
  licence: z.string(),
  licence_url: z.string(),
  publisher: z.string(),
  attribution: z.string(),
  sources: z.string().nullable(),
  comparability: z.string(),
  input_fingerprint: z.string(),
  /** Days whose published figures this snapshot changed. */
  days_restated: countSchema,
  total_requests: z.string(),
  total_tokens: z.string(),
})

const rowsRow = z.object({ rows: countSchema })

const columnRow = z.object({
  table_name: z.string(),
  table_comment: z.string(),
  column_name: z.string(),
  data_type: z.string(),
  is_nullable: z.boolean(),
  comment: z.string(),
})

export type Description = {
  readonly title: string
  readonly summary: string
  readonly keywords: readonly string[]
  readonly meta: z.infer<typeof metaRow>
  readonly snapshot: string
  /** Semantic version of the schema, with the snapshot as build. */
  readonly version: string
  /** Addresses of the dataset and of this snapshot's files, without a slash at the end. */
  readonly homepage: string
  readonly address: string
  readonly tables: readonly DescribedTable[]
}

const TITLE = 'App rankings'
const SUMMARY =
  'Which apps use large language models, by how much, and which are growing: requests and tokens per UTC day and ' +
  'public app, with popular and trending rankings.'
const KEYWORDS = ['large language models', 'AI apps', 'token usage', 'rankings']

/**
 * Describes the attached database `snapshot`.
 * @param publicUrl public address of the service.
 */
export async function describeSnapshot(
  connection: DuckDBConnection,
  { asOf, publicUrl }: { readonly asOf: Date; readonly publicUrl: string },
): Promise<Description> {
  const meta = await readRow(connection, 'bundle.sql#meta', metaRow)
  const columns = await readRows(connection, 'bundle.sql#columns', columnRow)
  const tables: DescribedTable[] = []
  for (const table of BUNDLED_TABLES) {
    const own = columns.filter(({ table_name }) => table_name === table.name)
    // Snapshots of older versions lack some.
    if (own.length > 0) tables.push(await describeTable(connection, table, own))
  }
  const snapshot = snapshotId(asOf)
  return {
    title: TITLE,
    summary: SUMMARY,
    keywords: KEYWORDS,
    meta,
    snapshot,
    version: `${meta.version.replace(/^v/, '')}.0.0+${snapshot}`,
    homepage: `${publicUrl}/`,
    address: `${publicUrl}${SNAPSHOTS_PATH}/${snapshot}`,
    tables,
  }
}

async function describeTable(
  connection: DuckDBConnection,
  table: BundledTable,
  columns: readonly z.infer<typeof columnRow>[],
): Promise<DescribedTable> {
  const count = `SELECT count(*) AS rows FROM snapshot.${identifier(table.name)}`
  const [counted] = await queryRows(connection, count, rowsRow)
  return {
    ...table,
    description: columns[0]?.table_comment ?? '',
    rows: counted?.rows ?? 0,
    fields: columns.map((column) => ({
      name: column.column_name,
      type: column.data_type,
      description: column.comment,
      nullable: column.is_nullable,
    })),
  }
}

/** The BibTeX entry. */
export function bibtex({ title, meta, snapshot, address }: Description): string {
  return [
    `@misc{app_rankings_${snapshot},`,
    `  title        = {{${braced(title)}}},`,
    `  author       = {{${braced(meta.publisher)}}},`,
    `  year         = {${meta.as_of.slice(0, 4)}},`,
    `  howpublished = {\\url{${address}}},`,
    `  note         = {As of ${meta.as_of}, ${meta.licence}}`,
    '}',
  ].join('\n')
}

/** Characters special to TeX that a backslash alone does not escape; a brace would close the entry. */
const TEX_NAMES: Readonly<Record<string, string>> = {
  '\\': String.raw`\textbackslash{}`,
  '{': String.raw`\textbraceleft{}`,
  '}': String.raw`\textbraceright{}`,
  '^': String.raw`\textasciicircum{}`,
  '~': String.raw`\textasciitilde{}`,
}

/** Escapes text inside the braces of an entry. */
function braced(text: string): string {
  return text.replaceAll(/[{}\\^~&%$#_]/g, (character) => TEX_NAMES[character] ?? `\\${character}`)
}
