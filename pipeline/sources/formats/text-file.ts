/**
 * Text files as bytes: unpacks them with Node, since DuckDB takes a truncated .gz or .zst for whole, and reads a file up to
 * the size it had when the run listed it.
 */
import { createReadStream, createWriteStream, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { DataError, messageOf } from '../../errors.ts'
import { USAGE_COLUMNS } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'

const CHUNK_BYTES = 1_048_576
const LINE_FEED = 10
const SPACE = 32
const QUOTE = 34

/** DuckDB rejects longer lines of CSV, and may skip a line of more than 16 MB in silence. */
export const LONGEST_LINE = 2_000_000

/** The first bytes of files whose name says otherwise, in hex. */
const OTHER_CONTENT = [
  { begins: /^1f8b/, is: 'compressed by gzip: its name must end in .gz' },
  { begins: /^(?:28b52ffd|5.2a4d18)/, is: 'compressed by zstd: its name must end in .zst' },
  { begins: /^50415231/, is: 'Parquet: its name must end in .parquet' },
  { begins: /^4152524f5731/, is: 'Arrow IPC: its name must end in .arrow' },
  { begins: /^(?:fffe|feff)/, is: 'text in UTF-16: write it in UTF-8' },
] as const

/** What DuckDB must be told about a text file. */
export type TextFile = {
  readonly file: RawFile
  /** Where DuckDB reads it: the file itself, or its unpacked copy. */
  readonly path: string
  /** The beginning, without a byte order mark. */
  readonly head: string
  /** Records that hold more than spaces, the header included. */
  readonly lines: number
  readonly hasQuotes: boolean
  /** The quotes do not pair, so that DuckDB may lose the last record in silence. */
  readonly hasOpenQuote: boolean
  /** Bytes of the longest line. */
  readonly longest: number
}

/**
 * Reads a file once, and writes an unpacked copy to `copy` if DuckDB cannot read the file as it stands.
 * @throws DataError with the file if it is truncated, or is of another format than its name says.
 */
export async function inspectText(file: RawFile, copy: string): Promise<TextFile> {
  let head = Buffer.alloc(0)
  const counter = createCounter(file.format === 'csv')
  const isCopied = file.compression !== 'none' || hasGrown(file)
  const look = async function* () {
    for await (const chunk of readLines(file)) {
      if (head.length === 0) head = Buffer.from(chunk.subarray(0, CHUNK_BYTES))
      counter.look(chunk)
      if (isCopied) yield chunk
    }
  }
  if (isCopied) mkdirSync(dirname(copy), { recursive: true })
  if (isCopied) await pipeline(look, createWriteStream(copy))
  else await look().next()
  requireText(file, head)
  const text = head.toString('utf8').replace(/^\uFEFF/, '')
  const { lines, longest, hasQuotes, isInside } = counter.end()
  return {
    file,
    path: isCopied ? copy : file.path,
    head: text,
    lines,
    longest,
    hasQuotes,
    hasOpenQuote: isInside,
  }
}

/** Whether the file has more bytes than when it was listed. */
export function hasGrown({ path, bytes }: RawFile): boolean {
  return statSync(path).size > bytes
}

/** Whether a required key of usage stands on fewer lines than the file has: a misspelt key is not null. */
export async function lacksKeys({ file, lines }: TextFile): Promise<boolean> {
  const { required, alternative } = USAGE_COLUMNS
  const counts = new Map<string, number>(required.map((column) => [column, 0]))
  const keys = required.flatMap((column) =>
    [column, ...(column === 'app_id' ? [alternative.app_id] : [])].map(
      (name) => [column, `"${name}"`] as const,
    ),
  )
  for await (const chunk of readLines(file)) {
    for (const [column, key] of keys) {
      for (let at = chunk.indexOf(key); at >= 0; at = chunk.indexOf(key, at + 1)) {
        counts.set(column, (counts.get(column) ?? 0) + 1)
      }
    }
  }
  return [...counts.values()].some((count) => count < lines)
}

function requireText({ name, compression }: RawFile, head: Buffer): void {
  const start = head.subarray(0, 8).toString('hex')
  const other = OTHER_CONTENT.find(({ begins }) => begins.test(start))
  if (other === undefined) return
  const inside = compression === 'none' ? 'It is' : 'Unpacked it is'
  throw new DataError(`${name} cannot be read as its name says. ${inside} ${other.is}`)
}

/** Counts the lines of a chunk without quotes, which is several times as fast. */
function countPlainLines(bytes: Buffer, counted: { lines: number; longest: number }): void {
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(LINE_FEED, start)
    const end = found < 0 ? bytes.length : found
    counted.longest = Math.max(counted.longest, end - start)
    while (start < end && (bytes[start] ?? 0) <= SPACE) start += 1
    if (start < end) counted.lines += 1
    start = end + 1
  }
}

/** Counts records by their ends; in CSV a line break between two quotes ends none. */
function createCounter(hasQuotedLines: boolean) {
  const counted = { lines: 0, longest: 0, hasQuotes: false, isInside: false }
  let isBlank = true
  return {
    counted,
    look(bytes: Buffer) {
      if (isBlank && !(hasQuotedLines && (counted.isInside || bytes.includes(QUOTE)))) {
        return countPlainLines(bytes, counted)
      }
      let start = 0
      for (let at = 0; at < bytes.length; at += 1) {
        const byte = bytes[at] ?? 0
        if (byte === LINE_FEED) {
          counted.longest = Math.max(counted.longest, at - start)
          start = at + 1
          if (!isBlank && !counted.isInside) {
            counted.lines += 1
            isBlank = true
          }
        } else if (byte > SPACE) {
          isBlank = false
          if (byte === QUOTE) {
            counted.hasQuotes = true
            counted.isInside = !counted.isInside
          }
        }
      }
      counted.longest = Math.max(counted.longest, bytes.length - start)
    },
    end() {
      if (!isBlank) counted.lines += 1
      return counted
    },
  }
}

/**
 * The bytes of a text file, whole lines at a time. Of a file that has grown since it was listed, a last line without an end
 * is left for the next run.
 */
export async function* readLines(file: RawFile): AsyncGenerator<Buffer> {
  const isGrowing = file.compression === 'none' && hasGrown(file)
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of readBytes(file)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const end = bytes.lastIndexOf(LINE_FEED) + 1
    rest = bytes.subarray(end)
    if (rest.length > 5 * LONGEST_LINE) {
      throw new DataError(
        `${file.name} cannot be read: it has a line of more than 10 MB. Shorten or remove it, or end lines in \\n`,
      )
    }
    if (end > 0) yield bytes.subarray(0, end)
  }
  if (rest.length > 0 && !isGrowing) yield rest
}

/** @throws DataError with the file if it is not whole. */
async function* readBytes(file: RawFile): AsyncGenerator<Buffer> {
  const source = openListed(file)
  const unpacked = file.compression === 'gz' ? createGunzip() : createZstdDecompress()
  const stream = file.compression === 'none' ? source : source.pipe(unpacked)
  source.once('error', (error) => stream.destroy(error))
  try {
    for await (const chunk of stream) yield chunk
    if (stream === unpacked) await requireZeros(file, unpacked.bytesWritten)
  } catch (error) {
    if (error instanceof DataError) throw error
    throw new DataError(`${file.name} cannot be read: ${messageOf(error)}. ${remedyFor(error)}`, {
      cause: error,
    })
  } finally {
    source.destroy()
    unpacked.destroy()
  }
}

function openListed({ path, bytes }: RawFile, start = 0): Readable {
  return start >= bytes
    ? Readable.from([])
    : createReadStream(path, { start, end: bytes - 1, highWaterMark: CHUNK_BYTES })
}

function remedyFor(error: unknown): string {
  const message = messageOf(error)
  if (message.includes('too much memory')) {
    return 'It was made by zstd with a window of more than 128 MB: compress it without --long, or with --long=27'
  }
  if (/incorrect header check|unknown frame|Unknown frame/i.test(message)) {
    return 'It does not begin with the compression of its name: rename the file, or compress it'
  }
  if (message.startsWith('EACCES')) return 'Give the user of the run the right to read it'
  return 'Deliver the file again, whole'
}

/** Node stops at the end of the compressed data, whatever follows it; tapes and block devices pad a file with zeros. */
async function requireZeros(file: RawFile, from: number): Promise<void> {
  for await (const bytes of openListed(file, from)) {
    if (Buffer.isBuffer(bytes) && bytes.some((byte) => byte !== 0)) {
      throw new DataError(
        `${file.name} cannot be read: the bytes after byte ${from} are not compressed. Deliver the file again, whole`,
      )
    }
  }
}
