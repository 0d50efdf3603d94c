/**
 * The bytes of text files: Node unpacks them, since DuckDB takes a truncated .gz or .zst for whole, and a file is read up to the
 * size it had when the run listed it.
 */
import { createReadStream, createWriteStream, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { DataError, messageOf } from '../../errors.ts'
import type { RawFile } from '../drop-folder.ts'

const CHUNK_BYTES = 1_048_576
const LINE_FEED = 10

/** A longer line fails the file. */
export const LONGEST_LINE = 10_000_000

/** The first bytes of files whose name says otherwise, in hex. */
const OTHER_CONTENT = [
  { begins: /^1f8b/, is: 'compressed by gzip: its name must end in .gz' },
  { begins: /^(?:28b52ffd|5.2a4d18)/, is: 'compressed by zstd: its name must end in .zst' },
  { begins: /^50415231/, is: 'Parquet: its name must end in .parquet' },
  { begins: /^4152524f5731/, is: 'Arrow IPC: its name must end in .arrow' },
  { begins: /^(?:fffe|feff)/, is: 'text in UTF-16: write it in UTF-8' },
] as const

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
]

/** A text file where DuckDB reads it: at its own path, or as an unpacked copy. */
export type ReadableText = {
  readonly path: string
  /** The first lines, without a byte order mark. */
  readonly head: string
}

/**
 * Makes a text file readable for DuckDB.
 * @param copy the path of the copy of a file that is compressed, or has grown since it was listed.
 * @param look called with every chunk of whole lines.
 * @throws DataError with the file if it is truncated, or is of another format than its name says.
 */
export async function prepareText(
  file: RawFile,
  copy: string,
  look?: (chunk: Buffer) => void,
): Promise<ReadableText> {
  let head: Buffer | undefined
  const lines = async function* () {
    for await (const chunk of readLines(file)) {
      head ??= requireText(file, chunk.subarray(0, CHUNK_BYTES))
      look?.(chunk)
      yield chunk
    }
  }
  const isCopied = file.compression !== 'none' || hasGrown(file)
  if (isCopied) {
    mkdirSync(dirname(copy), { recursive: true })
    await pipeline(lines, createWriteStream(copy))
  } else {
    for await (const _ of lines()) if (look === undefined) break
  }
  const path = isCopied ? copy : file.path
  return { path, head: (head ?? Buffer.alloc(0)).toString('utf8').replace(/^\uFEFF/, '') }
}

/** Whether the file has more bytes than when it was listed. */
export function hasGrown({ path, bytes }: RawFile): boolean {
  return statSync(path).size > bytes
}

function requireText({ name, compression }: RawFile, head: Buffer): Buffer {
  const start = head.subarray(0, 8).toString('hex')
  const other = OTHER_CONTENT.find(({ begins }) => begins.test(start))
  if (other === undefined) return head
  const inside = compression === 'none' ? 'It is' : 'Unpacked it is'
  throw new DataError(`${name} cannot be read as its name says. ${inside} ${other.is}`)
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
  const source = openListed(file)
  const unpacked = (file.compression === 'gz' ? createGunzip : createZstdDecompress)({
    chunkSize: CHUNK_BYTES,
  })
  const stream = file.compression === 'none' ? source : source.pipe(unpacked)
  source.once('error', (error) => stream.destroy(error))
  try {
    for await (const chunk of stream) yield chunk
    if (stream === unpacked) await requireZeros(file, unpacked.bytesWritten)
  } catch (error) {
    if (error instanceof DataError) throw error
    const message = messageOf(error)
    const remedy = REMEDIES.find(([words]) => words.test(message))?.[1] ?? 'Deliver the file again, whole'
    throw new DataError(`${file.name} cannot be read: ${message}. ${remedy}`, { cause: error })
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
