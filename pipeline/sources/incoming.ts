/**
 * The view `incoming`: the rows of the files being counted, read in place, and those that are staged. It has the columns of
 * usage, `violation` and `is_plain` (values.sql), and where a row is from: day, file (its number in `day_files`), row and
 * payload. `row` is NULL for text files, which DuckDB reads without the numbers of lines.
 *
 * The view `groups`: `incoming` grouped in one pass by day, app, model and what else tells rows apart, in a form that is the
 * same for every batch, whatever columns its files have.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { literal, pathPattern } from '../duckdb/sql-values.ts'
import { DataError } from '../errors.ts'
import {
  NULLABLE_TEXTS,
  PULLED_COLUMNS,
  USAGE_COLUMNS,
  allColumns,
  isAlternative,
  isValidated,
  type Columns,
} from './columns.ts'
import type { RawFile } from './drop-folder.ts'

/** Stands for bytes and characters that are no text. */
export const NO_TEXT = '\uFFFD'

/** A column of a file in DuckDB: its quoted name, or an expression for its value, and its type. */
export type TypedColumn = { readonly name: string; readonly type: string }

/** The columns that a file has, by their names here. */
export type TypedColumns = ReadonlyMap<string, TypedColumn>

/** How DuckDB reads a file. */
export type Scan = {
  /** The file, or its unpacked copy. */
  readonly path: string
  readonly types: TypedColumns
  /** The table function over some paths. */
  readonly rows: (paths: readonly string[]) => string
  /** An expression for the number of a row. */
  readonly row?: string
  /** An expression for a fault that the values do not show. */
  readonly fault?: string
  /** An expression for the row as it was, where its values are not that. */
  readonly payload?: string
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

/** A column of a text file, in which some words stand for null where the column is text. */
export function textColumn(column: string, name: string): TypedColumn {
  return { name: NULLABLE_TEXTS.includes(column) ? `without_null_word(${name})` : name, type: 'VARCHAR' }
}

/** The column; where it is an alternative, it is empty in rows that leave it out. */
export function named(columns: Columns, column: string, { name, type }: TypedColumn): TypedColumn {
  if (!isAlternative(columns, column) || NO_TEXT_TYPE.test(type)) return { name, type }
  return { name: `coalesce(CAST(${name} AS VARCHAR), '')`, type: 'VARCHAR' }
}

/** The types of usage that are not text. */
const USAGE_TYPES: Readonly<Record<string, 'TIMESTAMP' | 'BIGINT'>> = {
  ts: 'TIMESTAMP',
  app_id: 'BIGINT',
  prompt_tokens: 'BIGINT',
  completion_tokens: 'BIGINT',
  requests: 'BIGINT',
  row_count: 'BIGINT',
  reasoning_tokens: 'BIGINT',
  cached_tokens: 'BIGINT',
}

// A Parquet column without any value may be of the type "NULL".
const TIME = /^(?:DATE|TIMESTAMP(?:_S|_MS|_NS)?|"NULL")$/
const SMALL_INTEGER = /^(?:U?(?:TINYINT|SMALLINT|INTEGER)|BIGINT|"NULL")$/
const LARGE_NUMBER = /^(?:UBIGINT|U?HUGEINT|DECIMAL\(\d+,\d+\)|FLOAT16|FLOAT|DOUBLE)$/
const NO_TEXT_TYPE = /^(?:STRUCT|MAP|UNION|VARIANT|FIXED_LEN_BYTE_ARRAY|DECIMAL of)\b|\]$/

/** From here on, neighbouring integers share a floating-point number of the type. */
const INEXACT_FROM: Readonly<Record<string, number>> = { FLOAT16: 2 ** 11, FLOAT: 2 ** 24, DOUBLE: 2 ** 53 }

function timeOf({ name, type }: TypedColumn): string | undefined {
  if (type === 'TIMESTAMP WITH TIME ZONE') return `${name} AT TIME ZONE 'UTC'`
  if (TIME.test(type)) return `CAST(${name} AS TIMESTAMP)`
  return type === 'VARCHAR' ? `utc_from_text(${name})` : undefined
}

function countOf({ name, type }: TypedColumn): string | undefined {
  if (SMALL_INTEGER.test(type)) return `CAST(${name} AS BIGINT)`
  if (LARGE_NUMBER.test(type)) return `count_from_number(${name}, ${INEXACT_FROM[type] ?? 1e19})`
  return type === 'VARCHAR' ? `count_from_text(${name})` : undefined
}

/** The value as text; a list becomes JSON where the column may hold one, and any other nested value is none. */
function textOf({ name, type }: TypedColumn, { lists = [] }: Columns, column: string): string | undefined {
  if (!NO_TEXT_TYPE.test(type)) return `CAST(${name} AS VARCHAR)`
  return lists.includes(column) && type.endsWith(']') ? `CAST(to_json(${name}) AS VARCHAR)` : undefined
}

/** A number that is no exact integer is marked. */
function stagedOf(column: TypedColumn, columns: Columns, name: string): string | undefined {
  const text = textOf(column, columns, name)
  if (!LARGE_NUMBER.test(column.type)) return text
  return `coalesce(CAST(nullif(${countOf(column)}, -1) AS VARCHAR), ${text} || ' (not exact)')`
}

/**
 * The expressions for the columns that a kind of input has.
 * @param files their names, for messages.
 * @param to `values` for the view `incoming`, `texts` for the table `staged`.
 * @throws DataError with a column whose type cannot hold its values.
 */
export function readColumns(
  files: string,
  types: TypedColumns,
  columns: Columns,
  to: 'values' | 'texts',
): string {
  const expressions = allColumns(columns).map((name) => {
    const type = to === 'texts' ? 'VARCHAR' : (USAGE_TYPES[name] ?? 'VARCHAR')
    const column = types.get(name)
    if (column === undefined) return `CAST(NULL AS ${type}) AS ${name}`
    const read = to === 'texts' ? stagedOf : { TIMESTAMP: timeOf, BIGINT: countOf, VARCHAR: textOf }[type]
    const value = read(column, columns, name)
    if (value === undefined && isValidated(columns, name)) {
      throw new DataError(
        `${files}: the column ${name} is of type ${column.type}, which cannot hold it: ` +
          `write it as ${USAGE_TYPES[name] ?? 'VARCHAR'}`,
      )
    }
    return `${value ?? 'NULL'} AS ${name}`
  })
  return expressions.join(', ')
}

/** The rows of a file in the table `staged`. */
function scanStaged({ name }: RawFile): Scan {
  const columns = allColumns(USAGE_COLUMNS)
  const types = new Map(columns.map((column) => [column, { name: `r.${column}`, type: 'VARCHAR' }]))
  const fault = 'coalesce(r.fault, id_violation(r.request_id))'
  return { path: name, types, rows: stagedRows, row: 'r.row', fault, payload: 'r.payload' }
}

function stagedRows(names: readonly string[]): string {
  const index = `list_position([${names.map(literal).join(', ')}], s.file) - 1`
  return `(SELECT s.*, ${index} AS file_index FROM staged AS s)`
}

/** A row stands for one request and one raw row by default. Its id names its app, and its text only where it has none. */
const DEFAULTS = [
  'coalesce(r.requests, 1) AS requests',
  'coalesce(r.row_count, 1) AS row_count',
  'CASE WHEN r.app_id IS NULL THEN r.app END AS app',
  // An empty model is unknown anyway, and a text that is unchanged stays a dictionary.
  ...['provider', 'account_id', 'app_title', 'app_categories'].map(
    (column) => `nullif(r.${column}, '') AS ${column}`,
  ),
  'id_as_integer(r.request_id) AS request_id',
].join(', ')

/** What decides whether a row counts (values.sql). */
const VALIDATED =
  'r.day, r.fault, r.ts, r.app_id, r.app IS NOT NULL, r.prompt_tokens, r.completion_tokens, r.requests, r.row_count'

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
  const numbered = files.map(({ day, file }, number) => {
    return { number, day, file, scan: scans.get(file) ?? scanStaged(file) }
  })
  const rows = numbered.map(({ number, day, file }) => `(${number}, DATE '${day}', ${literal(file.name)})`)
  // CSV files are read by position, so that equal reading may name the columns otherwise.
  const alike = Map.groupBy(numbered, ({ number, scan }) =>
    JSON.stringify([scan.rows([]), [...scan.types], scan.isAlone === true ? number : null]),
  )
  const parts = [...alike.values()].flatMap((some) =>
    some.slice(0, 1).map(({ scan }) => readTogether(scan, some)),
  )
  await connection.run(`
    CREATE OR REPLACE TEMP TABLE day_files AS FROM (VALUES ${rows.join(', ')}) AS f (file, day, name);
    CREATE OR REPLACE TEMP VIEW incoming AS
    SELECT
      r.*, is_plain(${VALIDATED}) AS is_plain, violation(${VALIDATED}) AS violation_but_text,
      coalesce(violation_but_text, text_violation(r.app)) AS violation
    FROM (SELECT r.* REPLACE (${DEFAULTS}) FROM (${parts.join(' UNION ALL ')}) AS r) AS r`)
  return [...new Set(numbered.flatMap(({ scan }) => [...scan.types.keys()]))]
}

type NumberedFile = DayFile & { readonly number: number; readonly scan: Scan }

/** The part of the view for files that one table function reads. */
function readTogether(
  { types, rows, row = 'NULL', fault = 'NULL', payload = 'NULL' }: Scan,
  files: readonly NumberedFile[],
): string {
  const validated = [...types].filter(([column]) => isValidated(USAGE_COLUMNS, column))
  const values = validated.map(([column, { name }]) => `${column}: ${name}`)
  return `
    SELECT
      ${ofFile(files.map(({ day }) => `DATE '${day}'`))} AS day, ${ofFile(files.map(({ number }) => number))} AS file,
      ${row} AS row, ${fault} AS fault, coalesce(${payload}, CAST(to_json({${values.join(', ')}}) AS VARCHAR)) AS payload,
      ${readColumns(files.map(({ file }) => file.name).join(', '), types, PULLED_COLUMNS, 'values')}
    FROM ${rows(files.map(({ scan }) => scan.path))} AS r`
}

/** A value by file; one that is the same for all files is a constant, which costs no time. */
function ofFile(values: readonly (string | number)[]): string {
  const [only, ...others] = new Set(values)
  return others.length === 0 ? String(only) : `[${values.join(', ')}][CAST(r.file_index AS BIGINT) + 1]`
}

const NULL_TEXT = 'CAST(NULL AS VARCHAR)'
const NULL_TIME = 'CAST(NULL AS TIMESTAMP)'

/** A column of `groups`: its value over `incoming`, the columns that needs, and the constant where no file has these. */
type GroupColumn = readonly [value: string, needs?: readonly string[], otherwise?: string]

const COLUMNS: Readonly<Record<string, GroupColumn>> = {
  app_id: ['i.app_id'],
  app: ['i.app', ['app'], NULL_TEXT],
  model: ['i.model', ['model'], NULL_TEXT],
  provider: ['i.provider', ['provider'], NULL_TEXT],
  account_id: ['i.account_id', ['app', 'account_id'], NULL_TEXT],
  app_title: ['i.app_title', ['app', 'app_title'], NULL_TEXT],
  app_categories: ['i.app_categories', ['app', 'app_categories'], NULL_TEXT],
  read: ['count(*)'],
  rows: ['CAST(sum(i.row_count) AS BIGINT)', ['row_count'], 'read'],
  requests: ['sum(i.requests)', ['requests'], 'rows'],
  prompt_tokens: ['sum(i.prompt_tokens)'],
  completion_tokens: ['sum(i.completion_tokens)'],
  reasoning_tokens: [partOf('reasoning_tokens', 'completion_tokens'), ['reasoning_tokens'], '0'],
  cached_tokens: [partOf('cached_tokens', 'prompt_tokens'), ['cached_tokens'], '0'],
  rows_large_reasoning: [
    'count(*) FILTER (i.reasoning_tokens > i.completion_tokens)',
    ['reasoning_tokens'],
    '0',
  ],
  rows_large_cached: ['count(*) FILTER (i.cached_tokens > i.prompt_tokens)', ['cached_tokens'], '0'],
  rows_failed: ['count_if(i.requests = 0)', ['requests'], '0'],
  seen_at: ['min(i.ts)', ['app'], NULL_TIME],
  served_at: ['min(CASE WHEN i.requests > 0 THEN i.ts END)', ['app'], NULL_TIME],
}

/**
 * What `few` keys have instead, NULL where they cannot count a row. The hash of a model is computed once for each text of a
 * Parquet dictionary and groups faster than the text; sums of BIGINT are added up faster.
 */
const OF_FEW: Readonly<Record<string, string>> = {
  app_id: 'CASE WHEN i.is_plain THEN i.app_id END',
  model: 'hash(model_from_text(i.model))',
  requests: 'TRY_CAST(sum(i.requests) AS BIGINT)',
  prompt_tokens: 'TRY_CAST(sum(i.prompt_tokens) AS BIGINT)',
  completion_tokens: 'TRY_CAST(sum(i.completion_tokens) AS BIGINT)',
}

/** A part that is more than the whole does not count. */
function partOf(column: string, whole: string): string {
  return `coalesce(sum(CASE WHEN i.${column} BETWEEN 0 AND i.${whole} THEN i.${column} END), 0)`
}

/** Whether valid rows have tokens; NULL for rows that are not valid. */
const HAS_TOKENS = 'CASE WHEN i.violation_but_text IS NULL THEN i.prompt_tokens IS NOT NULL END'

const MODEL_KEY = 'hash(model_from_text(model))'

const ID_HASHES = 'list(hash(i.day, i.request_id)) FILTER (i.request_id IS NOT NULL)'

/** What the files of a batch have in common. */
export type Batch = {
  /** The columns that some file has. */
  readonly columns: readonly string[]
  readonly days: ReadonlySet<string>
  /** Whether every file is text: reading it a second time, for the request ids alone, would take as long as the first. */
  readonly areText: boolean
}

/** Whether rows are grouped by day, app and model alone. */
export function isByApp({ columns }: Batch): boolean {
  return !columns.includes('app') && !columns.includes('provider')
}

/**
 * The statements for the table `grouped` and the view `groups` over it, which has the same columns for every batch. A column
 * that is the same for all rows takes no time and no place: it is in the view alone. The table `model_texts` has the texts
 * that name models, the view `ids` the hashes of days with request ids.
 * @param keys `few` suffice where every row is plain and files have no other key than app and model.
 */
export function groupQueries({ columns, days, areText }: Batch, keys: 'few' | 'all'): string {
  const isFew = keys === 'few'
  const hasHashes = columns.includes('request_id') && areText
  const [day] = days
  const fields = [
    { name: 'day', value: 'i.day', constant: days.size === 1 ? `DATE '${day}'` : undefined },
    { name: 'has_tokens', value: HAS_TOKENS, constant: isFew ? 'true' : undefined },
    ...Object.entries(COLUMNS).map(([name, [value, needs = [], otherwise]]) => {
      const isThere = needs.every((column) => columns.includes(column))
      return { name, value: (isFew && OF_FEW[name]) || value, constant: isThere ? undefined : otherwise }
    }),
    { name: 'id_hashes', value: ID_HASHES, constant: hasHashes ? undefined : 'CAST(NULL AS UBIGINT[])' },
  ]
  const grouped = fields.filter(({ constant }) => constant === undefined)
  const rows = `
    SELECT ${grouped.map(({ name, value }) => `${value} AS ${name}`).join(', ')}
    FROM incoming AS i
    GROUP BY ALL`
  const hasModels = columns.includes('model')
  const isHashed = isFew && hasModels
  const storedKey = isHashed ? 'model' : 'model_key'
  const ids = areText
    ? 'SELECT unnest(g.id_hashes) AS key FROM groups AS g'
    : 'SELECT hash(i.day, i.request_id) AS key FROM incoming AS i WHERE i.request_id IS NOT NULL'
  return `
    CREATE OR REPLACE TEMP TABLE grouped AS
    SELECT ${askedOnce(columns, isHashed)}
    FROM (${rows}) AS g;
    CREATE OR REPLACE TEMP VIEW groups AS
    SELECT ${fields.map(({ name, constant }) => (constant === undefined ? name : `${constant} AS ${name}`)).join(', ')},
      ${hasModels ? storedKey : MODEL_KEY} AS model_key
    FROM grouped;
    CREATE OR REPLACE TEMP TABLE model_texts AS
    SELECT t.text, model_from_text(t.text) AS model
    FROM (SELECT DISTINCT s.model AS text FROM ${isHashed ? 'incoming' : 'groups'} AS s) AS t;
    CREATE OR REPLACE TEMP VIEW ids AS ${ids}`
}

/** The columns of a group `g`, with what is asked once for each group, since it is slow. */
function askedOnce(columns: readonly string[], isHashed: boolean): string {
  const readable = ' REPLACE (CASE WHEN text_violation(g.app) IS NULL THEN g.has_tokens END AS has_tokens)'
  const hasTexts = columns.includes('model') && !isHashed
  return `g.*${columns.includes('app') ? readable : ''}${hasTexts ? `, ${MODEL_KEY} AS model_key` : ''}`
}
