/** Reads Arrow IPC files (file and stream form) as documents, with every value as text. */
import { CompressionType, DataType, Vector, compressionRegistry, tableFromIPC } from 'apache-arrow'
import { decompressFrameSync } from 'lz4-napi'
import { readFile } from 'node:fs/promises'
import { zstdDecompressSync } from 'node:zlib'
import { DataError } from '../../errors.ts'
import { matchColumns, type Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { reading } from './bytes.ts'
import type { Document } from './json.ts'

// The library includes no codecs.
compressionRegistry.set(CompressionType.ZSTD, { decode: (bytes) => zstdDecompressSync(bytes) })
compressionRegistry.set(CompressionType.LZ4_FRAME, {
  decode: (bytes) => decompressFrameSync(Buffer.from(bytes)),
})

/** A table is decoded whole, and takes several times its size. */
const LARGEST_FILE = 256_000_000

const FILE_MAGIC = Buffer.from('ARROW1')
const STREAM_END = Buffer.from('ffffffff00000000', 'hex')

/** Digits of a floating-point number that are exact, in bits, by its precision. */
const EXACT_BITS = [11, 24, 53] as const

/**
 * The rows of an Arrow IPC file.
 * @param columns those that the file must have.
 * @throws DataError with the file if it is truncated, too large, not Arrow, or lacks a required column.
 */
export async function* readArrowRows(file: RawFile, columns: Columns): AsyncGenerator<Document> {
  const table = await readTable(file)
  const names = table.schema.fields.map(({ name }) => name)
  matchColumns(file.name, names, columns)
  const readers = names.map((name, index) => {
    const vector = table.getChildAt(index)
    return [name, (row: number) => textOf(vector?.type, vector?.get(row) ?? null)] as const
  })
  for (let row = 0; row < table.numRows; row += 1) {
    yield { row: row + 1, value: Object.fromEntries(readers.map(([name, read]) => [name, read(row)])) }
  }
}

async function readTable(file: RawFile) {
  if (file.bytes > LARGEST_FILE) {
    throw new DataError(
      `${file.name} has more than 256 MB, which is too large for Arrow: write Parquet instead`,
    )
  }
  const bytes = await readFile(file.path)
  const isFile = bytes.subarray(0, FILE_MAGIC.length).equals(FILE_MAGIC)
  const end = isFile ? FILE_MAGIC : STREAM_END
  // A stream that is cut between two messages looks whole.
  if (!bytes.subarray(-end.length).equals(end)) {
    throw new DataError(
      `${file.name} is not a whole Arrow IPC file: its end mark is missing. Write it again, or as Parquet`,
    )
  }
  return reading(file, 'Arrow IPC', () => tableFromIPC(bytes))
}

function textOf(type: DataType | undefined, value: unknown): unknown {
  if (value === null || type === undefined) return null
  if (DataType.isDictionary(type)) return textOf(type.dictionary, value)
  if (DataType.isTimestamp(type) || DataType.isDate(type)) return timeText(Number(value))
  if (DataType.isDecimal(type)) return decimalText(value, type.scale)
  if (DataType.isFloat(type)) return floatText(Number(value), 2 ** (EXACT_BITS[type.precision] ?? 0))
  if (value instanceof Vector) return Array.from(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  return typeof value === 'bigint' ? String(value) : value
}

/** Milliseconds since 1970, cut to microseconds. */
function timeText(milliseconds: number): string {
  try {
    const nanoseconds = BigInt(Math.round(milliseconds * 1000)) * 1000n
    return new Temporal.Instant(nanoseconds).toString({ fractionalSecondDigits: 6 })
  } catch {
    return 'out of range'
  }
}

/** The library gives decimals as words, the lowest first. */
function decimalText(value: unknown, scale: number): string {
  const words = value instanceof Uint32Array ? Array.from(value) : []
  const bits = words.reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n)
  const unscaled = BigInt.asIntN(words.length * 32, bits)
  const unit = 10n ** BigInt(Math.max(scale, 0))
  return unscaled % unit === 0n ? String(unscaled / unit) : `${unscaled} * 10^-${scale}`
}

/** From `inexact` on, neighbouring integers share a number. */
function floatText(value: number, inexact: number): string {
  return Number.isFinite(value) && Math.abs(value) >= inexact ? `${value} (rounded)` : String(value)
}
