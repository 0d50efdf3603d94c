/** Maps from a producer's export to rows of raw usage: a map states where each column is found. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { messageOf } from '../../errors.ts'
import { UsageError } from '../../program/program.ts'
import { USAGE_COLUMNS, allColumns, missingColumns } from '../columns.ts'
import { isRecord } from '../formats/json.ts'

/** The columns of raw usage that an import copies (CONTRACT 7). */
export const USAGE_FIELDS = allColumns(USAGE_COLUMNS)
type UsageField = (typeof USAGE_FIELDS)[number]

/** A row of usage as text; null or absent if a value is missing. */
export type UsageRow = Readonly<Partial<Record<UsageField, string | null>>>

/** Returns the value at a path of a row as text; null if there is none. map-row.ts has the form of paths. */
export type Read = (path: string) => string | null

/** Place of a column: a path, several paths joined by + that are added, the first of such with a value, or a function. */
export type ColumnSource = string | readonly string[] | ((read: Read) => string | null)

const pathSchema = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)])
const conditionSchema = z.union([
  z.strictObject({ path: z.string(), is: z.array(z.string()) }),
  z.strictObject({ path: z.string(), not: z.array(z.string()) }),
])

/** Condition on a row: the value at a path is, or is not, one of these texts in lower case; or a function. */
export type Condition = z.infer<typeof conditionSchema> | ((read: Read) => boolean)

/** Units of numbers in the column of the time, from 1970 on. */
const TIME_UNITS = ['s', 'ms', 'us', 'ns'] as const
export type TimeUnit = (typeof TIME_UNITS)[number]

export type UsageMap = {
  readonly columns: Readonly<Partial<Record<UsageField, ColumnSource | undefined>>>
  /** Set if the time is a number. */
  readonly unit?: TimeUnit | undefined
  /** Splits a document into rows; by default a document is one row. */
  readonly rows?: ((document: unknown) => Iterable<unknown>) | undefined
  /** Rows that meet one of these are not generations, and are left out. */
  readonly skipped?: readonly Condition[] | undefined
  /** Rows that meet one of these are failures and count 0 requests. */
  readonly failed?: readonly Condition[] | undefined
}

/** The form of `--map FILE.json`. */
const mapFileSchema = z
  .strictObject({
    columns: z.partialRecord(z.enum(USAGE_FIELDS), pathSchema),
    unit: z.enum(TIME_UNITS).optional(),
    rows: z.string().transform(rowsAt).optional(),
    leave_out: z.array(conditionSchema).optional(),
    failed: z.array(conditionSchema).optional(),
  })
  .transform(({ leave_out: skipped, ...map }): UsageMap => ({ ...map, skipped }))

const UNIT_ENDING = /^(.*):(s|ms|us|ns)$/

/**
 * Reads the value of `--map`: the name of a JSON file, or pairs such as `ts=created_at,app=metadata.app`. The path of `ts`
 * may end in the unit of its numbers, `ts=time:ms`.
 * @throws UsageError with the fault.
 */
export function readMap(text: string): UsageMap {
  const map = mapFileSchema.safeParse(text.includes('=') ? mapOfPairs(text) : readJson(text))
  if (!map.success) throw wrongMap(text, z.prettifyError(map.error))
  return map.data
}

function wrongMap(text: string, fault: string): UsageError {
  return new UsageError(
    `The map ${text} is wrong:\n${fault}\nExpected each of these columns once, with its path: ${USAGE_FIELDS.join(', ')}`,
  )
}

function mapOfPairs(text: string): unknown {
  const pairs = text.split(',').map((pair) => pair.split(/=(.*)/s, 2).map((side) => side.trim()))
  const names = pairs.map(([column]) => column)
  const twice = names.find((column, index) => names.indexOf(column) < index)
  if (twice !== undefined) throw wrongMap(text, `It has the column ${twice} twice`)
  const columns: Readonly<Record<string, string>> = Object.fromEntries(pairs)
  const [, ts, unit] = UNIT_ENDING.exec(columns['ts'] ?? '') ?? []
  return ts === undefined ? { columns } : { columns: { ...columns, ts }, unit }
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new UsageError(
      `The map ${path} cannot be read: ${messageOf(error)}. Expected a JSON file, or pairs such as ts=created_at`,
      { cause: error },
    )
  }
}

/** The elements of the list, or the one object, at a path of plain keys; a document without it is one row. */
export function rowsAt(path: string): (document: unknown) => Iterable<unknown> {
  return (document) => {
    const found = path
      .split('.')
      .reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), document)
    return Array.isArray(found) ? found : [isRecord(found) ? found : document]
  }
}

/**
 * Merges two maps; the columns of the first take precedence.
 * @throws UsageError if a required column is in neither.
 */
export function mergeMaps(first: UsageMap, second: UsageMap | undefined): UsageMap {
  const given = Object.fromEntries(Object.entries(first).filter(([, value]) => value !== undefined))
  const map = { ...second, ...given, columns: { ...second?.columns, ...first.columns } }
  const missing = missingColumns(USAGE_COLUMNS, Object.keys(map.columns))
  if (missing.length === 0) return map
  throw new UsageError(
    `The map has no path for ${missing.map((field) => field.replace('app_id', 'app or app_id')).join(', ')}`,
  )
}
