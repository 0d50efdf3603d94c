/** Reads Arrow IPC files (file and stream form) row by row, every value as text. */
import {
  Column,
  CompressionType,
  Precision,
  setCompressionCodec,
  Table,
  tableFromIPC,
  tableToIPC,
  TimeUnit,
  Type,
} from '@uwdata/flechette'
import type { DataType, Field, Schema } from '@uwdata/flechette'
import { decompressFrameSync } from 'lz4-napi'
import { readFile } from 'node:fs/promises'
import { zstdDecompressSync } from 'node:zlib'
import { DataError, messageOf } from '../../errors.ts'
import { allColumns, isDecisive, isInstead, matchColumns } from '../columns.ts'
import type { Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { readMessages } from './arrow-messages.ts'
import type { ArrowMessage } from './arrow-messages.ts'
import { mendUtf8 } from './text-file.ts'

// The library includes no codecs.
setCompressionCodec(CompressionType.ZSTD, {
  encode: refuseEncoding,
  decode: (bytes) => zstdDecompressSync(bytes),
})
setCompressionCodec(CompressionType.LZ4_FRAME, {
  encode: refuseEncoding,
  decode: (bytes) => decompressFrameSync(Buffer.from(bytes)),
})

/** Record batches up to this size are decoded together, so that their dictionaries are decoded once. */
const BYTES_AT_ONCE = 16_000_000

/** Rows converted to text at a time: a file may be one single batch, and text takes many times its size. */
const ROWS_AT_ONCE = 10_000

/** Units per second. */
const PER_SECOND: Readonly<Record<number, bigint>> = {
  [TimeUnit.SECOND]: 1n,
  [TimeUnit.MILLISECOND]: 1_000n,
  [TimeUnit.MICROSECOND]: 1_000_000n,
  [TimeUnit.NANOSECOND]: 1_000_000_000n,
}

/** From here on, neighbouring integers share a floating-point number. */
const INEXACT_FROM: Readonly<Record<number, number>> = {
  [Precision.HALF]: 2 ** 11,
  [Precision.SINGLE]: 2 ** 24,
  [Precision.DOUBLE]: 2 ** 53,
}

/** Exact values: times without floating milliseconds, decimals without rounding. */
const EXACT = { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true }

/** A row's values in column order; null if the value is null or the column missing. */
export type TextRow = readonly (string | null)[]

/**
 * The rows of an Arrow IPC file, some thousands at a time.
 * @param columns the columns to read.
 * @throws DataError with the file if it is truncated, not Arrow, or lacks a required column.
 */
export async function* readArrow(file: RawFile, columns: Columns): AsyncGenerator<TextRow[]> {
  try {
    for await (const { fields, table } of readTables(file)) {
      const readers = columnReaders(file, { fields, table }, columns)
      for (let first = 0; first < table.numRows; first += ROWS_AT_ONCE) {
        const length = Math.min(ROWS_AT_ONCE, table.numRows - first)
        yield Array.from({ length }, (_, index) => readers.map((read) => read(first + index)))
      }
    }
  } catch (error) {
    if (error instanceof DataError) throw error
    throw new DataError(
      `${file.name} cannot be read as Arrow IPC: ${messageOf(error)}. Deliver the file again, whole`,
      { cause: error },
    )
  }
}

/** Record batches, and their columns in file order. */
type Batches = { readonly fields: readonly Field[]; readonly table: Table }

/** The record batches of a file, some at a time; a file may contain several streams in a row. */
async function* readTables(file: RawFile): AsyncGenerator<Batches> {
  // Schema and dictionaries from earlier messages.
  let before: ArrowMessage[] = []
  let messages: ArrowMessage[] = []
  const decode = () => {
    const all = [...before, ...messages]
    before = all.filter(({ isRecords }) => !isRecords)
    messages = []
    return decodeMessages(all)
  }
  for await (const message of readMessages(file)) {
    // Arrow's JavaScript library writes the schema of a file into its footer only.
    const isBare = before.length + messages.length === 0 && !message.isSchema
    if (isBare) {
      const bytes = await readFile(file.path)
      const table = tryDecodeFile(bytes)
      if (table !== undefined) return yield { fields: table.schema.fields, table }
      messages.push(await schemaOfFooter(bytes))
    }
    const length = messages.reduce((sum, { bytes }) => sum + bytes.length, message.bytes.length)
    const isFull = length > BYTES_AT_ONCE && messages.some(({ isRecords }) => isRecords)
    if (isFull || (message.isSchema && before.length + messages.length > 0)) yield decode()
    if (message.isSchema) before = []
    messages.push(message)
  }
  yield decode()
}

/** Undefined for a file with decimal numbers of negative scale. */
function tryDecodeFile(bytes: Buffer): Table | undefined {
  try {
    return tableFromIPC(bytes, EXACT)
  } catch (error) {
    if (error instanceof RangeError && error.message.includes('Exponent')) return undefined
    throw error
  }
}

async function schemaOfFooter(bytes: Buffer): Promise<ArrowMessage> {
  const arrow = await import('apache-arrow')
  const { schema } = arrow.RecordBatchReader.from(bytes).open()
  const message = arrow.tableToIPC(new arrow.Table(schema), 'stream')
  return { isSchema: true, isRecords: false, bytes: Buffer.from(message) }
}

function decodeMessages(messages: readonly ArrowMessage[]): Batches {
  const schemaBytes = messages.filter(({ isSchema }) => isSchema).map(({ bytes }) => bytes)
  const { fields } = tableFromIPC(schemaBytes).schema
  const { schema } = tableFromIPC(schemaBytes)
  const isChanged = dropNegativeScales(schema.fields)
  const bytes = messages.map((message) =>
    isChanged && message.isSchema ? schemaMessage(schema) : message.bytes,
  )
  return { fields, table: tableFromIPC(bytes, EXACT) }
}

/**
 * The library rejects files with decimals of negative scale, but reads them once the scale is removed.
 * @returns whether there are any.
 */
function dropNegativeScales(fields: readonly Field[]): boolean {
  return fields.map(({ type }) => dropNegativeScale(type)).includes(true)
}

function dropNegativeScale(type: DataType): boolean {
  if (type.typeId === Type.Dictionary) return dropNegativeScale(type.dictionary)
  if (type.typeId !== Type.Decimal) return 'children' in type && dropNegativeScales(type.children)
  const isNegative = type.scale < 0
  if (isNegative) type.scale = 0
  return isNegative
}

function schemaMessage(schema: Schema): Uint8Array {
  const columns = schema.fields.map(({ type }) => new Column([], type))
  return tableToIPC(new Table(schema, columns), { format: 'stream' }) ?? new Uint8Array()
}

/** Readers for each column of the table. */
function columnReaders(
  file: RawFile,
  { fields, table }: Batches,
  columns: Columns,
): readonly ((index: number) => string | null)[] {
  const matched = matchColumns(file, table.names, columns)
  return allColumns(columns).map((name) => {
    const position = matched.get(name)
    const field = position === undefined ? undefined : fields[position]
    const column = position === undefined ? undefined : table.getChildAt(position)
    if (field === undefined || column === undefined) return () => null
    const isList = columns.lists?.includes(name) === true
    const toText = textOf(field.type, isList)
    if (toText === undefined && isDecisive(columns, name)) {
      throw new DataError(
        `${file.name}: the column ${name} is of type ${nameOf(field.type)}, which cannot hold it`,
      )
    }
    const missing = isInstead(columns, name) ? '' : null
    return (index) => {
      const value: unknown = toText === undefined ? null : column.at(index)
      return toText === undefined || value === null || value === undefined ? missing : toText(value)
    }
  })
}

function nameOf({ typeId }: DataType): string {
  return Object.entries(Type).find(([, id]) => id === typeId)?.[0] ?? String(typeId)
}

const BYTES: readonly number[] = [Type.Binary, Type.LargeBinary, Type.BinaryView, Type.FixedSizeBinary]
const OBJECTS: readonly number[] = [Type.Struct, Type.Map, Type.Union, Type.Interval]
const LISTS: readonly number[] = [
  Type.List,
  Type.LargeList,
  Type.ListView,
  Type.LargeListView,
  Type.FixedSizeList,
]

/** The text form of a type's values; undefined for an object, or for a list in a column without lists. */
function textOf(type: DataType, mayBeList: boolean): ((value: unknown) => string) | undefined {
  if (type.typeId === Type.Dictionary) return textOf(type.dictionary, mayBeList)
  if (type.typeId === Type.RunEndEncoded) return textOf(type.children[1].type, mayBeList)
  if (OBJECTS.includes(type.typeId)) return undefined
  if (!LISTS.includes(type.typeId)) return singleText(type)
  return mayBeList ? (value) => JSON.stringify(Array.from(Object(value))) : undefined
}

function singleText(type: DataType): (value: unknown) => string {
  if (BYTES.includes(type.typeId)) return bytesText
  if (type.typeId === Type.Date) return (value) => timeText(Number(value))
  if (type.typeId === Type.Timestamp) {
    return (value) => timestampText(BigInt(String(value)), PER_SECOND[type.unit] ?? 1n)
  }
  if (type.typeId === Type.Decimal) return (value) => decimalText(BigInt(String(value)), type.scale)
  if (type.typeId === Type.Float) {
    return (value) => floatText(Number(value), INEXACT_FROM[type.precision] ?? 0)
  }
  return String
}

function bytesText(value: unknown): string {
  return value instanceof Uint8Array ? mendUtf8(Buffer.from(value)).toString('utf8') : String(value)
}

/** A time of a unit since 1970, with the unit's precision. */
function timestampText(value: bigint, perSecond: bigint): string {
  const rest = ((value % perSecond) + perSecond) % perSecond
  const seconds = (value - rest) / perSecond
  const digits = String(perSecond).length - 1
  const fraction = digits === 0 ? '' : `.${String(rest).padStart(digits, '0')}`
  return timeText(Number(seconds) * 1000).replace('.000Z', `${fraction}Z`)
}

function timeText(milliseconds: number): string {
  const time = new Date(milliseconds)
  return Number.isNaN(time.getTime()) ? 'out of range' : time.toISOString()
}

/** A whole number has no decimals: `1.000` is not an integer's text. */
function decimalText(unscaled: bigint, scale: number): string {
  if (scale < 0) return String(unscaled * 10n ** BigInt(-scale))
  const unit = 10n ** BigInt(scale)
  if (unscaled % unit === 0n) return String(unscaled / unit)
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** A whole number becomes its digits; one that may have been rounded gets an exponent, which no count may have. */
function floatText(value: number, inexactFrom: number): string {
  const isRounded = Number.isFinite(value) && Math.abs(value) >= inexactFrom
  return isRounded ? value.toExponential() : String(value)
}

function refuseEncoding(): never {
  throw new Error('Arrow files are only read')
}
