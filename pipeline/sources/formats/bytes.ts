/**
 * The bytes of text files: Node unpacks them, since DuckDB takes a truncated .gz or .zst for whole, and a file is read up to the
 * size it had when the run listed it.
 */
import { appendFileSync, closeSync, createReadStream, openSync, statSync } from 'node:fs'
import { Readable, pipeline as pipeStreams } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { DataError, firstLineOf } from '../../errors.ts'
import type { RawFile } from '../drop-folder.ts'

const CHUNK_BYTES = 1_048_576
const [LINE_FEED, CARRIAGE_RETURN] = [10, 13]

/** Most bytes of a line; a longer one fails the file. */
export const LONGEST_LINE = 10_000_000

/** The first bytes of files whose name says otherwise, in hex. */
const OTHER_CONTENT: readonly (readonly [RegExp, string])[] = [
  [/^1f8b/, 'It is compressed by gzip: its name must end in .gz'],
  [/^(?:28b52ffd|5.2a4d18)/, 'It is compressed by zstd: its name must end in .zst'],
  [/^50415231/, 'It is Parquet: its name must end in .parquet'],
  [/^4152524f5731/, 'It is Arrow IPC: its name must end in .arrow'],
  [/^504b0304/, 'It is a ZIP archive, such as a workbook: save it as CSV in UTF-8'],
  [/^(?:425a68|fd377a58|377abcaf)/, 'It is packed by bzip2, xz or 7z: unpack it'],
  [/^(?:fffe|feff|(?:..00){4}|(?:00..){4})/, 'It is text in UTF-16: write it in UTF-8'],
]

/** What to do, by the message of the library that could not read a file. */
type Remedy = readonly [message: RegExp, remedy: string]

const REMEDIES: readonly Remedy[] = [
  [/EACCES|Permission denied/, 'Give the user of the run the right to read it'],
  [
    /too much memory/,
    'It was made by zstd with a window of more than 128 MB: compress it without --long, or with --long=27',
  ],
  [
    /incorrect header check|unknown frame/i,
    'It does not begin with the compression of its name: rename the file, or compress it',
  ],
  [/./, 'Deliver the file again, whole'],
]

/**
 * The error for a file that a library could not read.
 * @param remedies of its format, before those of any file.
 */
export function unreadable(
  { name }: Pick<RawFile, 'name'>,
  cause: unknown,
  format = '',
  remedies: readonly Remedy[] = [],
): DataError {
  const message = firstLineOf(cause)
  const remedy = [...remedies, ...REMEDIES].find(([words]) => words.test(message))?.[1]
  return new DataError(`${name} cannot be read${format && ` as ${format}`}: ${message}. ${remedy}`, { cause })
}

/**
 * Makes a text file readable for DuckDB, at its own path or as an unpacked copy; resolves to that path and the first lines.
 * @param copy the path for the copy of a compressed file.
 * @param look called with every chunk.
 * @throws DataError with the file if it is truncated, or is of another format than its name says.
 */
export async function prepareText(
  file: RawFile,
  copy: string,
  look?: (chunk: Buffer) => void,
): Promise<{ readonly path: string; readonly head: string }> {
  const isPlain = file.compression === 'none'
  const target = isPlain ? undefined : openSync(copy, 'w')
  let head: string | undefined
  try {
    for await (const chunk of readBytes(file)) {
      head ??= headText(file, chunk)
      look?.(chunk)
      // Streams would take a fifth more processor time.
      if (target !== undefined) appendFileSync(target, chunk)
      else if (look === undefined) break
    }
  } finally {
    if (target !== undefined) closeSync(target)
  }
  return { path: isPlain ? file.path : copy, head: head ?? '' }
}

/**
 * The first bytes of a text file as text.
 * @throws DataError with the remedy if they are of something else.
 */
export function headText({ name }: Pick<RawFile, 'name'>, chunk: Buffer): string {
  const start = chunk.toString('hex', 0, 8)
  const isOldMac = !chunk.includes(LINE_FEED) && chunk.subarray(0, -1).includes(CARRIAGE_RETURN)
  const content = OTHER_CONTENT.find(([magic]) => magic.test(start))?.[1]
  const fault = content ?? (isOldMac ? 'Its lines end in \\r alone: end them in \\n' : undefined)
  if (fault !== undefined) throw new DataError(`${name} cannot be read as text. ${fault}`)
  return chunk.toString('utf8', 0, CHUNK_BYTES)
}

/** Whether the file has more bytes than when it was listed. */
export function hasGrown({ path, bytes }: RawFile): boolean {
  return statSync(path).size > bytes
}

/**
 * The bytes of a text file, whole lines at a time. Of a file that has grown since it was listed, a last line without an end
 * is left for the next run.
 * @throws DataError with the file if it is not whole, or has a line of more than LONGEST_LINE.
 */
export async function* readLines(file: RawFile): AsyncGenerator<Buffer> {
  const isGrowing = file.compression === 'none' && hasGrown(file)
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of readBytes(file)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const end = bytes.lastIndexOf(LINE_FEED) + 1
    rest = bytes.subarray(end)
    if (rest.length > LONGEST_LINE) {
      throw new DataError(
        `${file.name} cannot be read: it has a line of more than ${LONGEST_LINE / 1e6} MB. Shorten or remove it, or end lines in \\n`,
      )
    }
    if (end > 0) yield bytes.subarray(0, end)
  }
  if (rest.length > 0 && !isGrowing) yield rest
}

/** The first bytes of a file, unpacked; none if it cannot be read, which its reader reports. */
export async function readHead(file: RawFile): Promise<Buffer> {
  try {
    for await (const chunk of readBytes(file)) return chunk
  } catch {
    // Its reader meets the same fault, and reports it.
  }
  return Buffer.alloc(0)
}

async function* readBytes(file: RawFile): AsyncGenerator<Buffer> {
  try {
    if (file.compression === 'none') return yield* readListed(file)
    const options = { chunkSize: 262_144 }
    const unpacked = file.compression === 'gz' ? createGunzip(options) : createZstdDecompress(options)
    // Passes a fault of the file on.
    pipeStreams(readListed(file), unpacked, () => undefined)
    for await (const chunk of unpacked) yield chunk
    // Node stops at the end of the compressed data, whatever follows it; tapes and block devices pad a file with zeros.
    for await (const bytes of readListed(file, unpacked.bytesWritten)) {
      if (bytes.some((byte) => byte !== 0)) {
        throw new Error(`the bytes after byte ${unpacked.bytesWritten} are not compressed`)
      }
    }
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** The bytes that the file had when it was listed. */
function readListed({ path, bytes }: RawFile, start = 0): AsyncIterable<Buffer> {
  if (start >= bytes) return Readable.from([])
  return createReadStream(path, { start, end: bytes - 1, highWaterMark: CHUNK_BYTES })
}
