/** Reads Arrow IPC files (both forms, file and stream) row by row, every value as text. */
import { DataType, RecordBatchReader, TimeUnit } from 'apache-arrow'
import type { RecordBatch, Vector } from 'apache-arrow'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
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

/** A row's values in the order of the columns asked for; null where the value is null or the column missing. */
export type TextRow = readonly (string | null)[]

/**
 * The rows of an Arrow IPC file, one batch at a time.
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
    const reader = await RecordBatchReader.from(createReadStream(file.path))
    for await (const batch of reader) {
      const names = batch.schema.fields.map(({ name }) => name.toLowerCase())
      requireColumns(file, names, required)
      yield textRows(
        batch,
        columns.map((column) => names.indexOf(column)),
      )
    }
  } catch (error) {
    if (error instanceof DataError) throw error
    throw new DataError(`${file.name} cannot be read as Arrow IPC: ${messageOf(error)}`, { cause: error })
  }
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
  if (vector === null) return () => null
  const toText = DataType.isTimestamp(vector.type)
    ? timestampText(vector, vector.type.unit)
    : valueText(vector)
  return (index) => (vector.isValid(index) ? toText(index) : null)
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

function valueText(vector: Vector): (index: number) => string {
  return (index) => {
    const value: unknown = vector.get(index)
    if (value instanceof Date) return value.toISOString()
    return typeof value === 'bigint' || typeof value === 'number' || typeof value === 'string'
      ? `${value}`
      : JSON.stringify(value)
  }
}
