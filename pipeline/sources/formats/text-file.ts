/** Reads text files to their end as bytes, line by line, with Node's decompressors. */
import { isUtf8 } from 'node:buffer'
import { createReadStream, createWriteStream } from 'node:fs'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { DataError, messageOf } from '../../errors.ts'
import type { Compression, RawFile } from '../drop-folder.ts'

const CHUNK_BYTES = 1_048_576
export const LINE_FEED = 10
export const CARRIAGE_RETURN = 13
const BYTE_ORDER_MARK = Buffer.from('\uFEFF')

/**
 * DuckDB rejects lines of 2,000,000 bytes and more, but may silently skip a line of more than 16 MB.
 */
const LONGEST_LINE = 10_000_000

/** The first four bytes of a .gz and a .zst, in hex; a frame of .zst may be skippable. */
const BEGINS = { gz: /^1f8b/, zst: /^(?:28b52ffd|5.2a4d18)/ } as const

function decompressor(compression: Compression): Transform {
  switch (compression) {
    case 'gz':
      return createGunzip()
    case 'zst':
      return createZstdDecompress()
    case 'none':
      return new Transform({ transform: (chunk, _encoding, next) => next(null, chunk) })
  }
}

/**
 * Reads a text file to its end, whole lines at a time, without its byte order mark. DuckDB accepts a truncated .gz or .zst
 * as complete; zlib does not.
 * @throws DataError with the file if it is truncated or has a line of more than 10 MB.
 */
export async function* readLines(file: RawFile): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  let isFirst = true
  for await (const chunk of readChunks(file)) {
    const bytes = Buffer.concat([rest, chunk])
    const end = Math.max(bytes.lastIndexOf(LINE_FEED), bytes.lastIndexOf(CARRIAGE_RETURN)) + 1
    rest = bytes.subarray(end)
    if (rest.length > LONGEST_LINE) throw tooLong(file)
    if (end === 0) continue
    yield isFirst ? withoutByteOrderMark(bytes.subarray(0, end)) : bytes.subarray(0, end)
    isFirst = false
  }
  if (rest.length > 0) yield isFirst ? withoutByteOrderMark(rest) : rest
}

async function* readChunks(file: RawFile): AsyncGenerator<Buffer> {
  const source = createReadStream(file.path, { highWaterMark: CHUNK_BYTES })
  const chunks = source.pipe(decompressor(file.compression))
  source.once('error', (error) => chunks.destroy(error))
  try {
    for await (const chunk of chunks) yield chunk
    // Node stops at the end of the compressed data, whatever follows it.
    if ('bytesWritten' in chunks) await requireZeros(file, Number(chunks.bytesWritten))
  } catch (error) {
    if (error instanceof DataError) throw error
    const remedy = (await isCompressed(file)) ? remedyFor(error) : NOT_COMPRESSED
    throw new DataError(`${file.name} cannot be read: ${messageOf(error)}. ${remedy}`, { cause: error })
  } finally {
    source.destroy()
    chunks.destroy()
  }
}

/** Tapes and block devices pad a file with zeros. */
async function requireZeros({ path, name }: RawFile, from: number): Promise<void> {
  for await (const bytes of createReadStream(path, { start: from })) {
    if (Buffer.isBuffer(bytes) && bytes.some((byte) => byte !== 0)) {
      throw new DataError(
        `${name} cannot be read: the bytes after byte ${from} are not compressed. Deliver the file again, whole`,
      )
    }
  }
}

const NOT_COMPRESSED = 'It does not begin with the compression of its name: rename the file, or compress it'

/** Whether a file's first bytes fit its name; true if the file cannot be read. */
async function isCompressed({ path, compression, bytes }: RawFile): Promise<boolean> {
  if (compression === 'none' || bytes === 0) return true
  for await (const start of createReadStream(path, { end: 3 }))
    return BEGINS[compression].test(start.toString('hex'))
  return true
}

function remedyFor(error: unknown): string {
  return messageOf(error).includes('too much memory')
    ? 'It was made by zstd with a window of more than 128 MB: compress it without --long, or with --long=27'
    : 'Deliver the file again, whole'
}

function tooLong({ name }: RawFile): DataError {
  return new DataError(
    `${name} cannot be read: it has a line of more than 10 MB. ` +
      'Lines must be shorter than 2,000,000 bytes: shorten or remove it',
  )
}

function withoutByteOrderMark(bytes: Buffer): Buffer {
  return bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    ? bytes.subarray(BYTE_ORDER_MARK.length)
    : bytes
}

/** Writes a text file uncompressed to `path`, each chunk of lines changed by `mend`. */
export async function writeMended(
  file: RawFile,
  path: string,
  mend: (lines: Buffer) => Buffer,
): Promise<RawFile> {
  await pipeline(async function* () {
    for await (const lines of readLines(file)) yield mend(lines)
  }, createWriteStream(path))
  return { ...file, path, compression: 'none' }
}

/**
 * Marks replaced bytes, before their digits: the replacement character and a word joiner, which app names from HTTP never
 * contain.
 */
export const REPLACEMENT = '\uFFFD\u2060'

/**
 * UTF-8 text in which the mark and two hex digits replace each invalid byte, so that different bytes stay different texts.
 */
export function mendUtf8(bytes: Buffer): Buffer {
  if (isUtf8(bytes)) return bytes
  const parts: Buffer[] = []
  let at = 0
  while (at < bytes.length) {
    const length = characterLength(bytes, at)
    const character = bytes.subarray(at, at + Math.max(length, 1))
    parts.push(length > 0 ? character : Buffer.from(`${REPLACEMENT}${character.toString('hex')}`))
    at += character.length
  }
  return Buffer.concat(parts)
}

/** Length in bytes of the character at a position; 0 if none begins there. */
function characterLength(bytes: Buffer, at: number): number {
  return [1, 2, 3, 4].find((length) => isUtf8(bytes.subarray(at, at + length))) ?? 0
}
