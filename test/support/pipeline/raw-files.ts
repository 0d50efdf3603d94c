/** Rows of raw usage written in every format: CSV, NDJSON, Parquet and Arrow. */
import {
  Field,
  Float64,
  Int64,
  RecordBatch,
  Schema,
  Struct,
  Table,
  Utf8,
  makeData,
  tableToIPC,
  vectorFromArray,
} from 'apache-arrow'
import { parquetWriteBuffer } from 'hyparquet-writer'

type Cell = string | number | bigint | null

/** A column: name and values of one type, or null. Numbers are written as floating-point. */
export type RawColumn = readonly [name: string, values: readonly Cell[]]

export type RawFormat = 'csv' | 'ndjson' | 'parquet' | 'arrow'

export const FORMATS: readonly RawFormat[] = ['csv', 'ndjson', 'parquet', 'arrow']

/** The content of a file with these columns. */
export function rawFile(format: RawFormat, columns: readonly RawColumn[]): Uint8Array {
  switch (format) {
    case 'csv':
      return Buffer.from([columns.map(([name]) => quoted(name)), ...rowsOf(columns, csvCell)].join('\n'))
    case 'ndjson':
      return Buffer.from(
        rowsOf(columns, jsonMember)
          .map((members) => `{${members}}`)
          .join('\n'),
      )
    case 'parquet':
      return parquetOf(columns.map(parquetColumn))
    case 'arrow':
      return arrowFile(columns)
  }
}

function rowsOf(columns: readonly RawColumn[], write: (name: string, cell: Cell) => string): string[] {
  const [, first = []] = columns[0] ?? []
  return first.map((_, row) => columns.map(([name, cells]) => write(name, cells[row] ?? null)).join(','))
}

function csvCell(_name: string, cell: Cell): string {
  return typeof cell === 'string' ? quoted(cell) : cell === null ? '' : plain(cell)
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}

function jsonMember(name: string, cell: Cell): string {
  return `${JSON.stringify(name)}:${typeof cell === 'string' || cell === null ? JSON.stringify(cell) : plain(cell)}`
}

/** A floating-point number with a decimal point, as most programs write it. */
function plain(cell: number | bigint): string {
  if (Object.is(cell, -0)) return '-0.0'
  return typeof cell === 'number' && Number.isInteger(cell) ? `${BigInt(cell)}.0` : String(cell)
}

function arrowFile(columns: readonly RawColumn[]): Uint8Array {
  const types = { string: new Utf8(), bigint: new Int64(), number: new Float64() }
  const vectors = columns.map(([, cells]) => vectorFromArray(cells, types[typeOf(cells)]))
  // A name may stand twice, which an object of columns cannot say.
  const fields = columns.map(([name, cells]) => new Field(name, types[typeOf(cells)]))
  const children = vectors.flatMap(({ data }) => data)
  const rows = makeData({ type: new Struct(fields), length: columns[0]?.[1].length ?? 0, children })
  return tableToIPC(new Table(new RecordBatch(new Schema(fields), rows)), 'stream')
}

function typeOf(cells: readonly Cell[]): 'string' | 'bigint' | 'number' {
  const first = cells.find((cell) => cell !== null)
  return typeof first === 'string' ? 'string' : typeof first === 'bigint' ? 'bigint' : 'number'
}

type Parquet = Parameters<typeof parquetWriteBuffer>[0]
type SchemaElement = NonNullable<Parquet['schema']>[number]

/** A column of a Parquet file: its name, its element of the schema, its values, and how these are written. */
export type ParquetColumn = readonly [
  name: string,
  element: Partial<SchemaElement>,
  data: readonly (Cell | Uint8Array)[],
  written?: Pick<Parquet['columnData'][number], 'encoding' | 'codec'>,
]

/** A Parquet file with exactly this schema. */
export function parquetOf(columns: readonly ParquetColumn[]): Uint8Array {
  return new Uint8Array(
    parquetWriteBuffer({
      statistics: false,
      compressors: { LZ4: (bytes) => bytes },
      schema: [
        { name: 'schema', num_children: columns.length },
        ...columns.map(([name, element]) => ({ repetition_type: 'REQUIRED' as const, ...element, name })),
      ],
      columnData: columns.map(([name, , data, written]) => ({ name, data: [...data], ...written })),
    }),
  )
}

const UTF8 = { type: 'BYTE_ARRAY', converted_type: 'UTF8' } as const
const ELEMENTS = { string: UTF8, bigint: { type: 'INT64' }, number: { type: 'DOUBLE' } } as const

function parquetColumn([name, data]: RawColumn): ParquetColumn {
  const repetition_type = data.includes(null) ? 'OPTIONAL' : 'REQUIRED'
  return [name, { ...ELEMENTS[typeOf(data)], repetition_type }, data]
}

/** The columns by name, each of the type of its values. */
export function plainColumns(columns: Readonly<Record<string, readonly Cell[]>>): ParquetColumn[] {
  return Object.entries(columns).map(parquetColumn)
}
