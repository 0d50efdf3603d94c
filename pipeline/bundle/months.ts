/**
 * The tables by day as one file per month. The same rows give the same bytes; an unchanged month is a hard link to the
 * file in the previous snapshot.
 */
import { copyFileSync, existsSync, linkSync, mkdirSync, rmSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { version, type DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import type { PublishedFile } from '../contract/snapshot-record.ts'
import { identifier, literal } from '../duckdb/sql-values.ts'
import { readRows, returnMemory } from '../duckdb/statements.ts'
import { measureFile } from '../snapshot/verify.ts'
import type { DescribedTable } from './description.ts'
import { parquetOptions, type TableFile } from './tables.ts'

const monthRow = z.object({
  month: z.string(),
  first_day: z.string(),
  last_day: z.string(),
  content: z.string(),
})

/** A published snapshot. */
type Published = {
  readonly folder: string
  /** Its files by its record; a month has a fingerprint. */
  readonly files: readonly PublishedFile[]
}

/**
 * Writes a table of the attached database `snapshot` into `folder`: one Parquet file for each month from the first day of the
 * data to the last, also for a month without usage.
 * @param connection to the warehouse.
 * @param before the previous snapshot; undefined if there is none.
 */
export async function writeMonths(
  connection: DuckDBConnection,
  table: DescribedTable,
  { folder, before }: { readonly folder: string; readonly before: Published | undefined },
): Promise<TableFile[]> {
  const months = await readRows(connection, 'bundle.sql#months', monthRow, { table: table.name })
  mkdirSync(join(folder, table.name))
  const files: TableFile[] = []
  for (const { month, content, ...days } of months) {
    const name = `${table.name}/month=${month}.parquet`
    const fingerprint = fingerprintOf(table, content)
    const reused = before && reuse(before, { folder, name, fingerprint })
    if (reused === undefined) {
      await connection.run(copyMonth(table, literal(join(folder, name))), days)
      await returnMemory(connection)
    }
    const facts = reused ?? measureFile(folder, name)
    files.push({ ...facts, table, month, fingerprint, isReused: reused !== undefined })
  }
  return files
}

/**
 * The statement that writes a month. It sorts the rows: their order and the row groups would otherwise depend on how the table
 * was filled.
 */
function copyMonth({ name, primaryKey = [] }: DescribedTable, target: string): string {
  const days = 'WHERE day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)'
  const rows = `FROM snapshot.${identifier(name)} ${days} ORDER BY ${primaryKey.map(identifier).join(', ')}`
  return `COPY (${rows}) TO ${target} ${parquetOptions()}`
}

/** Hash of everything that decides the bytes of a file: rows, types, the statement, and the writer's version. */
function fingerprintOf(table: DescribedTable, content: string): string {
  const columns = table.fields.map(({ name, type }) => [name, type])
  return createHash('sha256')
    .update(JSON.stringify([content, columns, copyMonth(table, ''), version()]))
    .digest('hex')
}

/** Links to a published file; undefined if its rows differ, or if it is missing or damaged. */
function reuse(
  published: Published,
  { folder, name, fingerprint }: { folder: string; name: string; fingerprint: string },
): PublishedFile | undefined {
  const source = join(published.folder, name)
  const known = published.files.find((file) => file.name === name)
  if (known?.fingerprint !== fingerprint || !existsSync(source)) return undefined
  const target = join(folder, name)
  linkOrCopy(source, target)
  const facts = measureFile(folder, name)
  if (facts.sha256 === known.sha256) return facts
  rmSync(target)
  return undefined
}

/** Copies if linking fails: some file systems have no links, some limit their number, none links across devices. */
function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target)
  } catch {
    copyFileSync(source, target)
  }
}
