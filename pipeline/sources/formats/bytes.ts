/**
 * The bytes of text files: Node unpacks them, since DuckDB takes a truncated .gz or .zst for whole, and a file is read up to the
 * size it had when the run listed it.
 */
import { createReadStream, createWriteStream, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Readable, pipeline as pipeStreams } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { DataError, messageOf } from '../../errors.ts'
import type { RawFile } from '../drop-folder.ts'

const CHUNK_BYTES = 1_048_576
const LINE_FEED = 10

/** A longer line fails the file. */
export const LONGEST_LINE = 10_000_000

/** The first bytes of files whose name says otherwise, in hex. */
const OTHER_CONTENT: readonly (readonly [RegExp, string])[] = [
  [/^1f8b/, 'compressed by gzip: its name must end in .gz'],
  [/^(?:28b52ffd|5.2a4d18)/, 'compressed by zstd: its name must end in .zst'],
  [/^50415231/, 'Parquet: its name must end in .parquet'],
  [/^4152524f5731/, 'Arrow IPC: its name must end in .arrow'],
  [/^(?:fffe|feff)/, 'text in UTF-16: write it in UTF-8'],
]

/** Remedies by Node's message. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /too much memory/,
    'It was made by zstd with a window of more than 128 MB: compress it without --long, or with --long=27',
  ],
  [
    /incorrect header check|unknown frame/i,
    'It does not begin with the compression of its name: rename the file, or compress it',
  ],
  [/^EACCES/, 'Give the user of the run the right to read it'],
  [/./, 'Deliver the file again, whole'],
]

/** A text file where DuckDB reads it: at its own path, or as an unpacked copy. */
export type ReadableText = {
  readonly path: string
  /** The first lines. */
  readonly head: string
}

/**
 * Makes a text file readable for DuckDB.
 * @param copy the path for the copy of a compressed file.
 * @param look called with every chunk of whole lines.
 * @throws DataError with the file if it is truncated, or is of another format than its name says.
 */
export async function prepareText(
  file: RawFile,
  copy: string,
  look?: (chunk: Buffer) => void,
): Promise<ReadableText> {
  let head: string | undefined
  const lines = async function* () {
    for await (const chunk of readLines(file)) {
      head ??= headOf(file, chunk)
      look?.(chunk)
      yield chunk
    }
  }
  const isPlain = file.compression === 'none'
  if (isPlain) {
    for await (const _ of lines()) if (look === undefined) break
  } else {
    mkdirSync(dirname(copy), { recursive: true })
    await pipeline(lines, createWriteStream(copy))
  }
  return { path: isPlain ? file.path : copy, head: head ?? '' }
}

function headOf({ name, compression }: RawFile, chunk: Buffer): string {
  const start = chunk.toString('hex', 0, 8)
  const content = OTHER_CONTENT.find(([magic]) => magic.test(start))?.[1]
  if (content === undefined) return chunk.toString('utf8', 0, CHUNK_BYTES)
  const inside = compression === 'none' ? 'It is' : 'Unpacked it is'
  throw new DataError(`${name} cannot be read as its name says. ${inside} ${content}`)
}

/** Whether the file has more bytes than when it was listed. */
export function hasGrown({ path, bytes }: RawFile): boolean {
  return statSync(path).size > bytes
}

/**
 * The bytes of a text file, whole lines at a time. Of a file that has grown since it was listed, a last line without an end
 * is left for the next run.
 * @throws DataError with the file if it is not whole, or has a line of more than 10 MB.
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
        `${file.name} cannot be read: it has a line of more than 10 MB. Shorten or remove it, or end lines in \\n`,
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
    // See above.
  }
  return Buffer.alloc(0)
}

async function* readBytes(file: RawFile): AsyncGenerator<Buffer> {
  try {
    if (file.compression === 'none') return yield* readListed(file)
    const options = { chunkSize: CHUNK_BYTES }
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
    const message = messageOf(error)
    const remedy = REMEDIES.find(([words]) => words.test(message))?.[1]
    throw new DataError(`${file.name} cannot be read: ${message}. ${remedy}`, { cause: error })
  }
}

/** The bytes that the file had when it was listed. */
function readListed({ path, bytes }: RawFile, start = 0): AsyncIterable<Buffer> {
  if (start >= bytes) return Readable.from([])
  return createReadStream(path, { start, end: bytes - 1, highWaterMark: CHUNK_BYTES })
}
