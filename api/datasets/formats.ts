/** The formats of rows: negotiation, and the same rows in the same order in each of them (CONTRACT 4.6). */
import type { Vector } from 'apache-arrow'
import type { Request } from 'express'
import type { parquetWriteBuffer } from 'hyparquet-writer'
import { SPREADSHEET_FORMULA, type Columns, type ColumnType } from '../../pipeline/contract/dataset.ts'
import { jsonText } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'

/** Rows for the encoders: a value per column, a bigint for an integer, otherwise a text. */
export type Table = {
  readonly columns: Columns
  readonly rows: readonly Readonly<Record<string, bigint | string>>[]
}

/** Rows with what describes them: `meta` in JSON, `metadata` inside Parquet and Arrow. */
type DescribedTable = Table & {
  readonly meta: object
  readonly metadata: Readonly<Record<string, string | number>>
}

/** Every format by its name, in order of preference. */
export const FORMAT_NAMES = ['json', 'csv', 'parquet', 'arrow'] as const
export type Format = (typeof FORMAT_NAMES)[number]

type FormatProperties = {
  readonly contentType: string
  /** Parquet and Arrow load their packages on first use: a service that sends neither needs 15 MB less. */
  readonly encode: (table: DescribedTable) => Buffer | Promise<Buffer>
}

export const FORMATS: Readonly<Record<Format, FormatProperties>> = {
  json: {
    contentType: 'application/json; charset=utf-8',
    encode: ({ rows, meta }) => Buffer.from(jsonText({ data: rows, meta })),
  },
  csv: {
    contentType: 'text/csv; charset=utf-8; header=present',
    encode: (table) => Buffer.from(csvText(table)),
  },
  parquet: { contentType: 'application/vnd.apache.parquet', encode: encodeParquet },
  arrow: { contentType: 'application/vnd.apache.arrow.stream', encode: encodeArrow },
}

/** The media types of the formats, in their order: content types without parameters. */
export const MEDIA_TYPES = FORMAT_NAMES.map((name) => FORMATS[name].contentType.replace(/;.*/, ''))

/** A parameter of a media type, such as charset, is ignored. `q` is not a parameter. */
const PARAMETER = /;\s*(?!q\s*=)[^\s;,="]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*)/gi

/**
 * The format of a reply: by `format=`, otherwise by `Accept`, with JSON as the default.
 * @throws ApiError 406 that lists the formats.
 */
export function chooseFormat(request: Request, named: Format | undefined): Format {
  if (named !== undefined) return named
  const { headers } = request
  if (headers.accept !== undefined) headers.accept = headers.accept.replaceAll(PARAMETER, '')
  const mediaType = request.accepts(MEDIA_TYPES)
  const chosen = FORMAT_NAMES.find((_name, index) => MEDIA_TYPES[index] === mediaType)
  if (chosen !== undefined) return chosen
  throw new ApiError(
    406,
    `None of the types in Accept exists here; available: ${MEDIA_TYPES.join(', ')}, also by format=${FORMAT_NAMES.join('|')}`,
    { metadata: { available: MEDIA_TYPES } },
  )
}

const FORMULA = new RegExp(SPREADSHEET_FORMULA)
const NEEDS_QUOTES = /[",\r\n]/

/** CSV (RFC 4180, lines end in LF) with a header. */
export function csvText({ columns, rows }: Table): string {
  const lines = rows.map((row) =>
    Object.entries(columns).map(([name, type]) => {
      const text = String(row[name])
      // A minus before an integer starts no formula.
      return type === 'text' ? csvCell(text) : text
    }),
  )
  return [Object.keys(columns), ...lines].map((cells) => `${cells.join(',')}\n`).join('')
}

function csvCell(text: string): string {
  // Names are untrusted, and a spreadsheet would run some of them as formulas.
  const safe = FORMULA.test(text) ? `'${text}` : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

type SchemaElement = NonNullable<Parameters<typeof parquetWriteBuffer>[0]['schema']>[number]

const PARQUET_TYPES: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT64' },
  decimal: {
    type: 'FIXED_LEN_BYTE_ARRAY',
    type_length: 16,
    converted_type: 'DECIMAL',
    precision: 38,
    scale: 0,
  },
}

/** Parquet, compressed with Snappy; decimals are decimal(38, 0), the metadata becomes key-value metadata. */
async function encodeParquet({ columns, rows, metadata }: DescribedTable): Promise<Buffer> {
  const { parquetWriteBuffer: write } = await import('hyparquet-writer')
  const types = Object.entries(columns)
  const elements = types.map(([name, type]) => ({
    name,
    repetition_type: 'REQUIRED' as const,
    ...PARQUET_TYPES[type],
  }))
  const data = ([name, type]: (typeof types)[number]) =>
    rows.map((row) => (type === 'text' ? String(row[name]) : BigInt(row[name] ?? 0)))
  const bytes = write({
    columnData: types.map((column) => ({ name: column[0], data: data(column) })),
    schema: [{ name: 'root', num_children: types.length }, ...elements],
    kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value: String(value) })),
    createdBy: 'app-rankings',
  })
  return Buffer.from(bytes)
}

type Values = readonly (bigint | string)[]

/** An Arrow IPC stream with one batch; decimals are decimal128(38, 0), the schema holds the metadata. */
async function encodeArrow({ columns, rows, metadata }: DescribedTable): Promise<Buffer> {
  const arrow = await import('apache-arrow')
  const vectorOf: Readonly<Record<ColumnType, (values: Values) => Vector>> = {
    text: (values) => arrow.vectorFromArray(values.map(String), new arrow.Utf8()),
    integer: (values) => arrow.vectorFromArray(values.map(BigInt), new arrow.Int64()),
    decimal: (values) => arrow.vectorFromArray(values.map(decimalWords), new arrow.Decimal(0, 38, 128)),
  }
  const vectors = Object.entries(columns).map(([name, type]) => [
    name,
    vectorOf[type](rows.map((row) => row[name] ?? '')),
  ])
  const made = new arrow.Table(Object.fromEntries(vectors))
  for (const [key, value] of Object.entries(metadata)) made.schema.metadata.set(key, String(value))
  return Buffer.from(arrow.tableToIPC(made, 'stream'))
}

/** A non-negative whole number as 128 bits, the least significant word first. */
function decimalWords(value: bigint | string): Uint32Array {
  return Uint32Array.from([0n, 32n, 64n, 96n], (shift) => Number(BigInt.asUintN(32, BigInt(value) >> shift)))
}
