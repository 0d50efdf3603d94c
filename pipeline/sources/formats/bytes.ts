/**
 * The bytes of text files: Node unpacks them, since DuckDB takes a truncated .gz or .zst for whole, and a file is read up to the
 * size it had when the run listed it.
 */
import { appendFileSync, closeSync, createReadStream, openSync, statSync } from 'node:fs'
import { pipeline as pipeStreams } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { DataError, firstLineOf, isShortage } from '../../errors.ts'
import type { RawFile } from '../drop-folder.ts'

const CHUNK_BYTES = 1_048_576
const LINE_FEED = 10

/** Most bytes of a line; a longer one fails the file. */
export const LONGEST_LINE = 10_000_000

/** What is no plain text in UTF-8, by its first bytes in hex. */
const CONTENTS = [
  [/^1f8b/, 'gz'],
  [/^(?:28b52ffd|5.2a4d18)/, 'zst'],
  [/^50415231/, 'parquet'],
  [/^(?:4152524f5731|ffffffff)/, 'arrow'],
  [/^50415245/, 'encrypted Parquet'],
  [/^46454131/, 'Feather version 1'],
  [/^504b0304/, 'a ZIP archive, such as a workbook'],
  [/^(?:425a68|fd377a58|377abcaf)/, 'bzip2, xz or 7z'],
  [/^(?:fffe|feff|(?:..00){4}|(?:00..){4})/, 'text in UTF-16'],
  [/^.{8}28b52ffd/, 'zstd frames, each behind its length, as the OpenTelemetry Collector writes'],
] as const

/** The content of a file by its first bytes; undefined for text. */
export function contentOf(head: Buffer): (typeof CONTENTS)[number][1] | undefined {
  const start = head.toString('hex', 0, 8)
  return CONTENTS.find(([magic]) => magic.test(start))?.[1]
}

/** The error for a file that a library could not read. */
export function unreadable({ name }: Pick<RawFile, 'name'>, cause: unknown, format = ''): DataError {
  const reason = firstLineOf(cause)
  // A library that says what it lacks has read the file.
  const isWhole = format !== '' && /supported|not implemented/i.test(reason)
  const remedy = isWhole ? 'Write it in another form' : 'Check that it is whole and may be read by this user'
  return new DataError(
    `${name} cannot be read${format && ` as ${format}`}: ${reason}. ${remedy}; data/README.md says which forms are read`,
    { cause },
  )
}

/** Reads a file by a library, and names it in errors. */
export async function reading<T>(file: RawFile, format: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isShortage(error) || error instanceof DataError) throw error
    throw unreadable(file, error, format)
  }
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
  using files = new DisposableStack()
  const target = isPlain ? undefined : files.adopt(openSync(copy, 'w'), closeSync)
  let head: string | undefined
  for await (const chunk of readBytes(file)) {
    head ??= headText(file, chunk)
    look?.(chunk)
    // Streams would take a fifth more processor time.
    if (target !== undefined) appendFileSync(target, chunk)
    else if (look === undefined) break
  }
  return { path: isPlain ? file.path : copy, head: head ?? '' }
}

/**
 * The first bytes of a text file as text.
 * @throws DataError if they are of something else.
 */
export function headText({ name }: Pick<RawFile, 'name'>, chunk: Buffer): string {
  const content = contentOf(chunk)
  if (content !== undefined) {
    const remedy = content.includes(' ')
      ? 'Write it as CSV or NDJSON in UTF-8'
      : `Its name must end in .${content}`
    throw new DataError(`${name} is not text in UTF-8: its first bytes are those of ${content}. ${remedy}`)
  }
  return chunk.toString('utf8')
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

/**
 * The first bytes of a file, unpacked.
 * @throws DataError with the file if they cannot be read.
 */
export async function readHead(file: RawFile): Promise<Buffer> {
  for await (const chunk of readBytes(file)) return chunk
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
async function* readListed({ path, bytes }: RawFile, start = 0): AsyncGenerator<Buffer> {
  if (start < bytes) yield* createReadStream(path, { start, end: bytes - 1, highWaterMark: CHUNK_BYTES })
}
