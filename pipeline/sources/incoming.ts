/** The view `incoming`: a part for every layout of files, and one for the rows that are staged. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { literal } from '../duckdb/sql-values.ts'
import { USAGE_COLUMNS, allColumns, isValidated } from './columns.ts'
import type { RawFile } from './drop-folder.ts'
import { parquetRows } from './formats/parquet-file.ts'
import type { SchemaGroup } from './formats/parquet-file.ts'
import type { TextFile } from './formats/text-file.ts'
import { layoutOf, pathsOf } from './formats/text-rows.ts'
import { usageExpressions } from './typed-columns.ts'
import type { TypedColumns } from './typed-columns.ts'

/** A file of the days being counted; its place in the list is its number in SQL. */
type DayFile = { readonly day: string; readonly file: RawFile }

/** What is known about the files so far. */
export type Batch = {
  /** `YYYY-MM-DD` */
  readonly days: readonly string[]
  readonly files: readonly DayFile[]
  readonly parquet: SchemaGroup[]
  /** Text files that DuckDB reads. */
  readonly texts: Map<RawFile, TextFile>
  /** Files that are read row by row into `staged`. */
  readonly staged: Set<RawFile>
}

/** A part of the view, and the columns that its files have. */
export type Branch = { readonly select: string; readonly columns: readonly string[] }

/** The parts of the view; a text file without a layout is staged. */
export function branchesOf(batch: Batch): readonly Branch[] {
  const texts = [...batch.texts].filter(([file]) => !batch.staged.has(file))
  const groups = new Map<string, TextFile[]>()
  for (const [file, text] of texts) {
    const layout = layoutOf(text)
    if (layout === undefined) batch.staged.add(file)
    else {
      // CSV files are read by position, so that equal reading may name the columns otherwise.
      const key = JSON.stringify([layout.rows(''), [...layout.types]])
      groups.set(key, [...(groups.get(key) ?? []), text])
    }
  }
  const branches = [...groups.values()].map((group) => textBranch(batch, group))
  branches.push(
    ...batch.parquet.filter(({ files }) => files.length > 0).map((group) => parquetBranch(batch, group)),
  )
  if (batch.staged.size > 0) branches.push(stagedBranch())
  return branches
}

function textBranch(batch: Batch, group: readonly TextFile[]): Branch {
  const [first] = group
  const layout = first && layoutOf(first)
  if (layout === undefined) throw new Error('No layout')
  const { types, rows, fault = 'NULL' } = layout
  const files = group.map(({ file }) => file)
  return branch(batch, { files, types, fault, row: 'NULL', rows: rows(pathsOf(group)) })
}

function parquetBranch(batch: Batch, { types, files, names }: SchemaGroup): Branch {
  // A column that is ignored may have DuckDB's name for the file or the row.
  const isNumbered = names.some((name) => name.toLowerCase() === 'file_row_number')
  const path = names.some((name) => name.toLowerCase() === 'path') ? 'path_of_file' : 'path'
  const options = `, filename = '${path}', file_row_number = ${!isNumbered}`
  const row = isNumbered ? 'row_number() OVER ()' : 'r.file_row_number + 1'
  return branch(batch, { files, types, fault: 'NULL', row, path, rows: parquetRows(files, options) })
}

type Part = {
  readonly files: readonly RawFile[]
  readonly types: TypedColumns
  readonly fault: string
  readonly row: string
  readonly rows: string
  readonly path?: string
}

function branch({ files: all }: Batch, { files, types, fault, row, rows, path = 'path' }: Part): Branch {
  const names = files.map(({ name }) => name).join(', ')
  const [first] = files
  const isOne = files.length === 1
  const number = isOne ? String(all.findIndex(({ file }) => file === first)) : 'f.file'
  const columns = [...types.keys()]
  const validated = columns.filter((column) => isValidated(USAGE_COLUMNS, column))
  const payload = validated.map((column) => `${column}: ${types.get(column)?.name}`).join(', ')
  return {
    columns,
    select: `
      SELECT ${number} AS file, ${row} AS row, ${fault} AS fault, CAST(to_json({${payload}}) AS VARCHAR) AS payload,
        ${usageExpressions(names, types).join(', ')}
      FROM ${rows} AS r${isOne ? '' : ` JOIN day_files AS f ON f.path = r.${path}`}`,
  }
}

function stagedBranch(): Branch {
  const columns = allColumns(USAGE_COLUMNS)
  const types = new Map(columns.map((name) => [name, { name: `r.${name}`, type: 'VARCHAR' }]))
  const validated = columns.filter((column) => isValidated(USAGE_COLUMNS, column))
  const payload = `to_json({${validated.map((column) => `${column}: r.${column}`).join(', ')}})`
  const expressions = usageExpressions('', types).map((each) =>
    each.endsWith(' AS app') ? 'CASE WHEN r.app_id IS NULL THEN r.app END AS app' : each,
  )
  return {
    columns,
    select: `
      SELECT f.file, r.row, r.fault, coalesce(r.payload, CAST(${payload} AS VARCHAR)) AS payload, ${expressions.join(', ')}
      FROM staged AS r JOIN day_files AS f ON f.name = r.file`,
  }
}

/** Creates the table `day_files` and the view `incoming`. */
export async function defineIncoming(
  connection: DuckDBConnection,
  { days, files, texts, staged }: Batch,
  branches: readonly Branch[],
): Promise<void> {
  const rows = files.map(({ day, file }, number) => {
    const text = staged.has(file) ? undefined : texts.get(file)
    const lines = text === undefined ? 'NULL' : text.lines - (file.format === 'csv' ? 1 : 0)
    const path = literal(text?.path ?? file.path)
    return `(${number}, DATE '${day}', ${literal(file.name)}, ${path}, CAST(${lines} AS BIGINT))`
  })
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE day_files AS
     FROM (VALUES ${rows.join(', ')}) AS f (file, day, name, path, lines)`,
  )
  const [first] = days
  // A single day is a constant, which saves a join.
  const day = days.length === 1 && first ? `DATE '${first}'` : 'd.day'
  const withDay = days.length === 1 ? '' : 'JOIN day_files AS d ON d.file = i.file'
  await connection.run(
    `CREATE OR REPLACE TEMP VIEW incoming AS
     SELECT ${day} AS day, i.* FROM (${branches.map(({ select }) => select).join(' UNION ALL ')}) AS i ${withDay}`,
  )
}
