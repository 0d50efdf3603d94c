/** First look at a text file: is it whole, can DuckDB see all of it, and which columns does a CSV header name? */
import { createReadStream } from 'node:fs'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { DataError, messageOf } from '../errors.ts'
import type { Compression, RawFile } from './drop-folder.ts'

/** Far more than any header; a file without a line break in so many bytes is not CSV. */
const HEADER_BYTES = 65_536
const CHUNK_BYTES = 1_048_576
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const QUOTE = 34
const COMMA = 44

/**
 * DuckDB rejects a line from 2,000,000 bytes on, but passes over one of more than 16 MB without a word, depending on
 * where it lies. Where a line ends inside of a chunk, up to a chunk of it is not measured.
 */
const LONGEST_LINE = 10_000_000
const BYTE_ORDER_MARK = '\uFEFF'
const CSV_FIELD = /("(?:[^"]|"")*"|[^,]*)(,|$)/g

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
 * Reads a file to its end. DuckDB takes the end of a truncated .gz or .zst for the end of the data, without an error;
 * zlib does not.
 * @throws DataError that names the file.
 */
async function eachChunk(file: RawFile, take: (chunk: Buffer) => void): Promise<void> {
  const source = createReadStream(file.path, { highWaterMark: CHUNK_BYTES })
  try {
    await pipeline(source, decompressor(file.compression), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) take(chunk)
    })
  } catch (error) {
    throw new DataError(`${file.name} cannot be read: ${messageOf(error)}. Deliver the file again, whole`, {
      cause: error,
    })
  }
}

/**
 * Proves that a text file can be read to its end, and that no line is so long that it would get lost.
 * @returns the first bytes as text.
 * @throws DataError that names the file.
 */
async function verifyWhole(file: RawFile, look?: (chunk: Buffer) => void): Promise<string> {
  const start: Buffer[] = []
  let kept = 0
  let line = 0
  let longest = 0
  await eachChunk(file, (chunk) => {
    look?.(chunk)
    if (kept < HEADER_BYTES) {
      start.push(chunk.subarray(0, HEADER_BYTES - kept))
      kept += chunk.length
    }
    const end = lastLineEnd(chunk)
    line = end < 0 ? line + chunk.length : chunk.length - 1 - end
    longest = Math.max(longest, line)
  })
  if (longest > LONGEST_LINE) {
    throw new DataError(
      `${file.name} cannot be read: it has a line of more than 10 MB. ` +
        'Lines must be shorter than 2,000,000 bytes: shorten it, or take it out',
    )
  }
  return withoutByteOrderMark(Buffer.concat(start)).toString('utf8')
}

/**
 * Proves that DuckDB can see every line of an NDJSON file: what follows a carriage return alone it may lose.
 * @throws DataError that names the file.
 */
export async function verifyNdjson(file: RawFile): Promise<void> {
  let alone = false
  let open = false
  await verifyWhole(file, (chunk) => {
    if (open && chunk[0] !== LINE_FEED) alone = true
    open = chunk.at(-1) === CARRIAGE_RETURN
    let at = chunk.indexOf(CARRIAGE_RETURN)
    while (!alone && at >= 0 && at < chunk.length - 1) {
      alone = chunk[at + 1] !== LINE_FEED
      at = chunk.indexOf(CARRIAGE_RETURN, at + 1)
    }
  })
  if (alone) {
    throw new DataError(
      `${file.name} cannot be read: it has a carriage return without a line feed. Lines must end in \\n or \\r\\n`,
    )
  }
}

/** How many lines of a text file are not blank. */
export async function countLines(file: RawFile): Promise<number> {
  let lines = 0
  let blank = true
  await eachChunk(file, (chunk) => {
    const lineEnd = chunk.includes('\n') ? '\n' : '\r'
    for (const [index, line] of chunk.toString('latin1').split(lineEnd).entries()) {
      if (index > 0) blank = true
      if (blank && line.trim() !== '') {
        lines += 1
        blank = false
      }
    }
  })
  return lines
}

function lastLineEnd(chunk: Buffer): number {
  const end = chunk.lastIndexOf(LINE_FEED)
  return end < 0 ? chunk.lastIndexOf(CARRIAGE_RETURN) : end
}

/** Follows the quotes of a CSV file: they are regular where each stands as RFC 4180 has it, and none is left open. */
function followQuotes(): { readonly look: (chunk: Buffer) => void; readonly areRegular: () => boolean } {
  let open = false
  let regular = true
  let before: number | undefined
  const follow = (byte: number) => {
    // Two in a row, which stand for one, end a text and begin the next.
    if (byte === QUOTE) {
      if (!open && before !== QUOTE && !isBetween(before)) regular = false
      open = !open
    } else if (before === QUOTE && !open && !isBetween(byte)) regular = false
    before = byte
  }
  return {
    look(chunk) {
      const bytes = before === undefined ? withoutByteOrderMark(chunk) : chunk
      // Most files have none at all, which is found out much faster.
      if (!open && before !== QUOTE && !bytes.includes(QUOTE)) before = bytes.at(-1)
      else for (const byte of bytes) follow(byte)
    },
    areRegular: () => regular && !open,
  }
}

/** Does the byte stand between two values, or is there none, as before the first? */
function isBetween(byte: number | undefined): boolean {
  return byte === undefined || byte === COMMA || byte === LINE_FEED || byte === CARRIAGE_RETURN
}

function withoutByteOrderMark(chunk: Buffer): Buffer {
  return chunk.indexOf(BYTE_ORDER_MARK) === 0 ? chunk.subarray(Buffer.byteLength(BYTE_ORDER_MARK)) : chunk
}

/**
 * The column names in the first line of a CSV file, lower case, and whether the quotes of the file are regular.
 * @throws DataError when there is no header or it names a column twice.
 */
export async function readCsvHeader(file: RawFile): Promise<{ names: string[]; regular: boolean }> {
  const quotes = followQuotes()
  const [line = ''] = (await verifyWhole(file, quotes.look)).split(/\r\n|\n|\r/, 1)
  const names = splitCsvLine(line).map((name, index) => name.trim().toLowerCase() || unnamed(index))
  if (line.trim() === '')
    throw new DataError(`${file.name} is empty: expected a first line with the column names`)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new DataError(`${file.name} names the column "${twice}" twice`)
  return { names, regular: quotes.areRegular() }
}

/** Spreadsheets leave columns without a name behind; they are ignored like any other that we do not know. */
function unnamed(index: number): string {
  return `column ${index + 1}, which has no name`
}

/** After a last field without a comma the pattern matches once more, emptily. */
function splitCsvLine(line: string): string[] {
  return [...line.matchAll(CSV_FIELD)]
    .slice(0, line.endsWith(',') ? undefined : -1)
    .map(([, field = '']) => (field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field))
}
