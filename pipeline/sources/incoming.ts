/**
 * The view `incoming`: the rows of the files being counted, read in place, and those that are staged. It has the columns of
 * usage, and day, file (its number in `day_files`), row, fault and payload. `row` is NULL for text files, which DuckDB reads
 * without the numbers of lines.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { literal, pathPattern } from '../duckdb/sql-values.ts'
import { USAGE_COLUMNS, allColumns, isValidated, usageExpressions } from './columns.ts'
import type { TypedColumns } from './columns.ts'
import type { RawFile } from './drop-folder.ts'

/** How DuckDB reads a file. */
export type Scan = {
  /** The file, or its unpacked copy. */
  readonly path: string
  readonly types: TypedColumns
  /** The table function over a list of paths. */
  readonly rows: (paths: string) => string
  /** An expression for the number of a row. */
  readonly row?: string
  /** An expression for a fault that only the reading by lines can describe. */
  readonly fault?: string
  /** Selects lines that lack a key, which `rows` takes for a null. */
  readonly lacksKeys?: string
  /** Whether no other file may be read with this one. */
  readonly isAlone?: boolean
}

/** A file of the days being counted; its place in the list is its number in SQL. */
export type DayFile = { readonly day: string; readonly file: RawFile }

/** A list of paths for DuckDB's readers. */
export function pathList(paths: readonly string[]): string {
  return `[${paths.map((path) => literal(pathPattern(path))).join(', ')}]`
}

/** Reads every column of usage of a file, to find out whether that is possible. */
export async function tryScan(connection: DuckDBConnection, { types, rows, path }: Scan): Promise<void> {
  const columns = [...types.values()].map(({ name }) => `bit_xor(hash(${name}))`)
  await connection.run(`SELECT ${columns.join(', ')} FROM ${rows(pathList([path]))}`)
}

/**
 * Creates the table `day_files` and the view `incoming`.
 * @param scans of the files that are read in place; the others are staged.
 * @returns the columns of usage that some file has.
 */
export async function defineIncoming(
  connection: DuckDBConnection,
  files: readonly DayFile[],
  scans: ReadonlyMap<RawFile, Scan>,
): Promise<readonly string[]> {
  const rows = files.map(({ day, file }, number) => `(${number}, DATE '${day}', ${literal(file.name)})`)
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE day_files AS FROM (VALUES ${rows.join(', ')}) AS f (file, day, name)`,
  )
  const numbered = files.map(({ day, file }, number) => ({ number, day, file, scan: scans.get(file) }))
  // CSV files are read by position, so that equal reading may name the columns otherwise.
  const alike = Map.groupBy(numbered, ({ number, scan }) =>
    JSON.stringify(scan && [scan.rows(''), [...scan.types], scan.isAlone === true ? number : null]),
  )
  const branches = [...alike.values()].map((some) => {
    const [{ scan } = {}] = some
    return scan === undefined ? staged() : inPlace(scan, some)
  })
  await connection.run(
    `CREATE OR REPLACE TEMP VIEW incoming AS ${branches.map(({ select }) => select).join(' UNION ALL ')}`,
  )
  return [...new Set(branches.flatMap(({ columns }) => columns))]
}

type NumberedFile = DayFile & { readonly number: number; readonly scan: Scan | undefined }

/** A part of the view. */
type Branch = { readonly select: string; readonly columns: readonly string[] }

/** Files that one table function reads. */
function inPlace(
  { types, rows, row = 'NULL', fault = 'NULL' }: Scan,
  files: readonly NumberedFile[],
): Branch {
  const paths = files.map(({ file, scan }) => scan?.path ?? file.path)
  const columns = [...types.keys()]
  const payload = payloadOf(columns, (column) => types.get(column)?.name ?? 'NULL')
  const names = files.map(({ file }) => file.name).join(', ')
  return {
    columns,
    select: `
      SELECT ${ofFile(files.map(({ day }) => `DATE '${day}'`))} AS day, ${ofFile(files.map(({ number }) => String(number)))} AS file,
        ${row} AS row, ${fault} AS fault, ${payload} AS payload, ${usageExpressions(names, types).join(', ')}
      FROM ${rows(pathList(paths))} AS r`,
  }
}

/** A value by file; one that is the same for all files is a constant, which costs no time. */
function ofFile(values: readonly string[]): string {
  const [only, ...others] = new Set(values)
  return others.length === 0 ? String(only) : `[${values.join(', ')}][CAST(r.file_index AS BIGINT) + 1]`
}

function staged(): Branch {
  const columns = allColumns(USAGE_COLUMNS)
  const types = new Map(columns.map((name) => [name, { name: `r.${name}`, type: 'VARCHAR' }]))
  const expressions = usageExpressions('', types, 'CASE WHEN r.app_id IS NULL THEN r.app END')
  return {
    columns,
    select: `
      SELECT f.day, f.file, r.row, r.fault, coalesce(r.payload, ${payloadOf(columns, (column) => `r.${column}`)}) AS payload,
        ${expressions.join(', ')}
      FROM staged AS r JOIN day_files AS f ON f.name = r.file`,
  }
}

/** The validated values of a row, for the quarantine. */
function payloadOf(columns: readonly string[], value: (column: string) => string): string {
  const validated = columns.filter((column) => isValidated(USAGE_COLUMNS, column))
  return `CAST(to_json({${validated.map((column) => `${column}: ${value(column)}`).join(', ')}}) AS VARCHAR)`
}
