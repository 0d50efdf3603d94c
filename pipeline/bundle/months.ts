/**
 * The tables by day as files per month. The same rows give the same bytes, and a month whose rows did not
 * change is a hard link to its file in the snapshot before.
 */
import { copyFileSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { version } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { COMPARABILITY_NOTE, LICENCE } from '../contract/dataset.ts'
import { identifier, literal } from '../duckdb/sql-values.ts'
import { countSchema, queryRows, returnMemory, sqlFile } from '../duckdb/statements.ts'
import { measureFile } from './checksums.ts'
import type { FileFacts } from './checksums.ts'
import type { TableFile } from './data-file.ts'
import { DESCRIPTOR_FILE } from './data-package.ts'
import type { DescribedTable } from './description.ts'
import { copyOptions, selectRows } from './table-files.ts'
import type { FileFormat } from './tables.ts'

const monthRow = z.object({
  month: z.string(),
  first_day: z.string(),
  last_day: z.string(),
  rows: countSchema,
  content: z.string(),
})

/** A file says nothing of the snapshot that it was first written for: other snapshots share it. */
const ABOUT = { license: LICENCE.name, license_url: LICENCE.url, comparability: COMPARABILITY_NOTE }

/** The table that the query for the months is written for. */
const MONTHS_OF = 'app_daily'

/**
 * The statement that writes a month, but for the name of its file. How rows come out of a table depends on how they went
 * in, and the row groups of a file with that: they are sorted.
 */
function copyMonth(table: DescribedTable, format: FileFormat): (target: string) => string {
  const key = (table.primaryKey ?? []).map(identifier).join(', ')
  const days = 'WHERE day BETWEEN CAST($first_day AS DATE) AND CAST($last_day AS DATE)'
  const rows = `${selectRows(table, format)} ${days} ORDER BY ${key}`
  return (target) => `COPY (${rows}) TO ${target} ${copyOptions(format, ABOUT)}`
}

/** The files of a published snapshot that another one may share: by name, with fingerprint and checksum. */
type Published = {
  readonly folder: string
  readonly files: ReadonlyMap<string, { readonly fingerprint: string; readonly sha256: string }>
}

/**
 * Writes a table of the attached database `snapshot` into `folder`: for each format a file for each month from the first day
 * of the data to the last, also for one without usage.
 * @param connection to the warehouse.
 * @param before folder of the snapshot before, undefined where there is none.
 */
export async function writeMonths(
  connection: DuckDBConnection,
  table: DescribedTable,
  { folder, before }: { readonly folder: string; readonly before: string | undefined },
): Promise<TableFile[]> {
  const published = before === undefined ? undefined : readPublished(before)
  const months = await queryRows(
    connection,
    sqlFile('bundle.sql#months').replaceAll(MONTHS_OF, table.name),
    monthRow,
  )
  mkdirSync(join(folder, table.name))
  const files: TableFile[] = []
  for (const format of table.formats) {
    const copy = copyMonth(table, format)
    for (const { month, rows, content, ...days } of months) {
      const name = `${table.name}/month=${month}.${format}`
      const fingerprint = fingerprintOf(table, [content, copy('')])
      const reused = published && reuse(published, { folder, name, fingerprint })
      if (reused === undefined) {
        await connection.run(copy(literal(join(folder, name))), days)
        await returnMemory(connection)
      }
      files.push({
        ...(reused ?? measureFile(folder, name)),
        table,
        format,
        rows,
        month,
        fingerprint,
        isReused: reused !== undefined,
      })
    }
  }
  return files
}

/** Everything that decides the bytes of a file: rows, their types, the statement, and the version of its writer. */
function fingerprintOf({ fields }: DescribedTable, [content, statement]: readonly [string, string]): string {
  const columns = fields.map(({ name, type }) => [name, type])
  return createHash('sha256')
    .update(JSON.stringify([content, columns, statement, version()]))
    .digest('hex')
}

const descriptorSchema = z.object({
  resources: z.array(z.object({ path: z.string(), hash: z.string(), fingerprint: z.string().optional() })),
})

/** What a snapshot says of its files; nothing where it cannot be read, and every month is written then. */
function readPublished(folder: string): Published | undefined {
  try {
    const text = readFileSync(join(folder, DESCRIPTOR_FILE), 'utf8')
    const { resources } = descriptorSchema.parse(JSON.parse(text))
    const files = resources.flatMap(({ path, hash, fingerprint }) =>
      fingerprint === undefined
        ? []
        : [[path, { fingerprint, sha256: hash.replace(/^sha256:/, '') }] as const],
    )
    return { folder, files: new Map(files) }
  } catch {
    return undefined
  }
}

/** Shares a published file; undefined where it has other rows, is gone, or is not what was published. */
function reuse(
  published: Published,
  {
    folder,
    name,
    fingerprint,
  }: { readonly folder: string; readonly name: string; readonly fingerprint: string },
): FileFacts | undefined {
  const source = join(published.folder, name)
  const known = published.files.get(name)
  if (known?.fingerprint !== fingerprint || !existsSync(source)) return undefined
  const target = join(folder, name)
  linkOrCopy(source, target)
  const facts = measureFile(folder, name)
  if (facts.sha256 === known.sha256) return facts
  rmSync(target)
  return undefined
}

/** Some file systems know no links, some allow few to one file, and none leads to another file system. */
function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target)
  } catch {
    copyFileSync(source, target)
  }
}
