/** Reads Arrow IPC files (both forms, file and stream) row by row, every value as text. */
import { compressionRegistry, CompressionType, DataType, RecordBatchReader, TimeUnit } from 'apache-arrow'
import type { Decimal, RecordBatch, Vector } from 'apache-arrow'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { zstdDecompressSync } from 'node:zlib'
import { DataError, messageOf } from '../errors.ts'
import { requireColumns } from './columns.ts'
import type { RawFile } from './drop-folder.ts'

const FILE_MAGIC = Buffer.from('ARROW1')
const STREAM_END = Buffer.from('ffffffff00000000', 'hex')
const MICROSECONDS: Record<TimeUnit, (value: bigint) => bigint> = {
  [TimeUnit.SECOND]: (value) => value * 1_000_000n,
  [TimeUnit.MILLISECOND]: (value) => value * 1_000n,
  [TimeUnit.MICROSECOND]: (value) => value,
  [TimeUnit.NANOSECOND]: (value) => value / 1_000n,
}

/** Rows that are text at a time: a file may be one single batch, and as text it takes many times its size. */
const ROWS_AT_ONCE = 10_000

// The library has no codecs of its own, Node has this one.
compressionRegistry.set(CompressionType.ZSTD, { decode: (bytes) => zstdDecompressSync(bytes) })

/** A row's values in the order of the columns asked for; null where the value is null or the column missing. */
export type TextRow = readonly (string | null)[]

/**
 * The rows of an Arrow IPC file, some thousands at a time.
 * @param columns the columns to read, lower case; others are passed over.
 * @param required the ones of them that must be there.
 * @throws DataError that names the file, when it is not whole, not Arrow, or lacks a required column.
 */
export async function* readArrow(
  file: RawFile,
  columns: readonly string[],
  required: readonly string[],
): AsyncGenerator<TextRow[]> {
  await verifyEnd(file)
  try {
    for await (const batch of readBatches(file)) {
      const names = batch.schema.fields.map(({ name }) => name.toLowerCase())
      requireColumns(file, names, required)
      const positions = columns.map((column) => names.indexOf(column))
      for (let first = 0; first < batch.numRows; first += ROWS_AT_ONCE) {
        yield textRows(batch.slice(first, first + ROWS_AT_ONCE), positions)
      }
    }
  } catch (error) {
    if (error instanceof DataError) throw error
    throw new DataError(`${file.name} cannot be read as Arrow IPC: ${reasonOf(error)}`, { cause: error })
  }
}

/** The batches of a file; streams may stand one behind the other in it. */
async function* readBatches({ path }: RawFile): AsyncGenerator<RecordBatch> {
  for await (const reader of RecordBatchReader.readAll(createReadStream(path))) {
    yield* reader
    // The other form ends with its footer, and the reader would begin it again.
    if (reader.isFile()) return
  }
}

function reasonOf(error: unknown): string {
  const message = messageOf(error)
  return message.includes('codec not found')
    ? 'its buffers are compressed with LZ4. Write it without compression, with ZSTD, or as Parquet'
    : message
}

/** A stream cut between two batches reads like a whole one, so its end mark is asked for. */
async function verifyEnd(file: RawFile): Promise<void> {
  const handle = await open(file.path)
  try {
    const { size } = await handle.stat()
    const start = Buffer.alloc(FILE_MAGIC.length)
    const end = Buffer.alloc(STREAM_END.length)
    await handle.read(start, 0, start.length, 0)
    await handle.read(end, 0, end.length, Math.max(0, size - end.length))
    const whole = start.equals(FILE_MAGIC) ? end.subarray(2).equals(FILE_MAGIC) : end.equals(STREAM_END)
    if (!whole) throw new DataError(`${file.name} is not a whole Arrow IPC file: its end mark is missing`)
  } finally {
    await handle.close()
  }
}

function textRows(batch: RecordBatch, positions: readonly number[]): TextRow[] {
  const columns = positions.map((position) => textColumn(batch, position))
  return Array.from({ length: batch.numRows }, (_, index) => columns.map((column) => column(index)))
}

function textColumn(batch: RecordBatch, position: number): (index: number) => string | null {
  const vector: Vector | null = position < 0 ? null : batch.getChildAt(position)
  // A column of type Null says of each of its values that it is valid.
  if (vector === null || DataType.isNull(vector.type)) return () => null
  const toText = textOf(vector)
  return (index) => (vector.isValid(index) ? toText(index) : null)
}

function textOf(vector: Vector): (index: number) => string {
  const { type } = vector
  if (DataType.isTimestamp(type)) return timestampText(vector, type.unit)
  if (DataType.isDate(type)) return (index) => new Date(Number(vector.get(index))).toISOString()
  if (DataType.isDecimal(type)) return (index) => decimalText(vector.get(index), type)
  return (index) => valueText(vector.get(index))
}

const WORD_BITS = 32n

/** A decimal number from its words of 32 bits, the lowest first. */
function decimalText(words: Uint32Array, { scale }: Decimal): string {
  const bits = words.reduceRight((sum, word) => (sum << WORD_BITS) | BigInt(word), 0n)
  const unscaled = BigInt.asIntN(words.length * Number(WORD_BITS), bits)
  if (scale <= 0) return String(unscaled * 10n ** BigInt(-scale))
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** Read from the 64-bit values themselves: the library's own accessor rounds to floating milliseconds. */
function timestampText(vector: Vector, unit: TimeUnit): (index: number) => string {
  const toMicroseconds = MICROSECONDS[unit]
  const values = BigInt64Array.from(vector.data.flatMap(({ values: chunk }) => Array.from<bigint>(chunk)))
  return (index) => microsecondsText(toMicroseconds(values[index] ?? 0n))
}

function microsecondsText(microseconds: bigint): string {
  const milliseconds = microseconds / 1_000n
  const rest = microseconds % 1_000n
  const time = new Date(Number(milliseconds))
  if (Number.isNaN(time.getTime()) || rest < 0n) return 'out of range'
  return time.toISOString().replace('Z', `${rest.toString().padStart(3, '0')}Z`)
}

function valueText(value: unknown): string {
  // A whole floating number keeps its digits: 1e22 would be text of another kind.
  if (typeof value === 'number') return Number.isInteger(value) ? String(BigInt(value)) : String(value)
  return typeof value === 'bigint' || typeof value === 'string' ? String(value) : JSON.stringify(value)
}
