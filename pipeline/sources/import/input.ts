/** The files of an import: finds their format and compression from name or content. */
import { createReadStream, globSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { UsageError } from '../../program/program.ts'
import { DataError } from '../../errors.ts'
import { formatNamed, isSkipped } from '../drop-folder.ts'
import type { Compression, Format, RawFile } from '../drop-folder.ts'

/** The values of `--format`. */
export const FORMATS: readonly Format[] = ['ndjson', 'csv', 'parquet', 'arrow']

export type Input = {
  readonly file: RawFile
  /** One JSON document, such as a list over several lines, instead of one object per line. */
  readonly isWholeJson: boolean
}

/** Bytes read to recognise the content. */
const HEAD_BYTES = 65_536

const MAGIC = {
  gz: Buffer.from('1f8b', 'hex'),
  zst: Buffer.from('28b52ffd', 'hex'),
  parquet: Buffer.from('PAR1'),
  arrowFile: Buffer.from('ARROW1'),
  arrowStream: Buffer.from('ffffffff', 'hex'),
} as const

/** The files of the arguments, and all files in their folders, by name. */
export function filesNamed(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path]
    const files = globSync('**', {
      cwd: path,
      withFileTypes: true,
      exclude: ({ name }) => isSkipped(name),
    })
      .filter((entry) => entry.isFile() && !isSkipped(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted()
    if (files.length === 0) throw new UsageError(`The folder ${path} holds no file`)
    return files
  })
}

/**
 * Inspects a file.
 * @param name the file's name in messages.
 * @param format value of `--format`; default: by the ending of the name, otherwise by content.
 * @throws DataError if there is no such file.
 */
export async function inspectInput(
  path: string,
  { name = path, format }: { readonly name?: string; readonly format?: Format | undefined } = {},
): Promise<Input> {
  const facts = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (facts === undefined) throw new DataError(`${name} does not exist`)
  if (!facts.isFile()) throw new DataError(`${name} is not a readable file`)
  const start = await firstBytes(path)
  if (start.subarray(4).equals(MAGIC.zst)) {
    throw new DataError(
      `${name} has zstd frames, each behind its length, as the OpenTelemetry Collector writes with compression: zstd. ` +
        'Unpack it into one JSON document per line, or remove that setting there',
    )
  }
  const compression = compressionOf(start)
  const head = await headOf(path, compression)
  const found = format ?? formatNamed(name) ?? formatOf(head)
  const file = {
    path,
    name,
    format: found,
    compression,
    bytes: Number(facts.size),
    version: `${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}`,
  }
  return { file, isWholeJson: found === 'ndjson' && isWholeJson(head.toString('utf8')) }
}

/** The bytes of a file, decompressed. */
function openBytes({ path, compression }: Pick<RawFile, 'path' | 'compression'>): Readable {
  const source = createReadStream(path)
  if (compression === 'none') return source
  const decompressed = compression === 'gz' ? createGunzip() : createZstdDecompress()
  source.on('error', (error) => decompressed.destroy(error))
  return source.pipe(decompressed)
}

async function firstBytes(path: string): Promise<Buffer> {
  await using handle = await open(path)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(8), 0, 8, 0)
  return buffer.subarray(0, bytesRead)
}

async function headOf(path: string, compression: Compression): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  try {
    for await (const part of openBytes({ path, compression })) {
      parts.push(Buffer.from(part))
      length += parts.at(-1)?.length ?? 0
      if (length >= HEAD_BYTES) break
    }
  } catch {
    // A read error is reported by the reader.
  }
  return Buffer.concat(parts).subarray(0, HEAD_BYTES)
}

function compressionOf(bytes: Buffer): Compression {
  if (startsWith(bytes, MAGIC.gz)) return 'gz'
  return startsWith(bytes, MAGIC.zst) ? 'zst' : 'none'
}

function formatOf(head: Buffer): Format {
  if (startsWith(head, MAGIC.parquet)) return 'parquet'
  if (startsWith(head, MAGIC.arrowFile) || startsWith(head, MAGIC.arrowStream)) return 'arrow'
  return /^\uFEFF?\s*[[{]/.test(head.toString('utf8')) ? 'ndjson' : 'csv'
}

function startsWith(bytes: Buffer, magic: Buffer): boolean {
  return bytes.subarray(0, magic.length).equals(magic)
}

/** A list, or an object that continues in the next line. */
function isWholeJson(head: string): boolean {
  const text = head.replace(/^\uFEFF/, '').trimStart()
  const [line = '', ...others] = text.split('\n').filter((each) => each.trim() !== '')
  if (text.startsWith('[')) return true
  if (others.length === 0) return false
  try {
    JSON.parse(line)
    return false
  } catch {
    // One broken line among lines does not make a document.
    return !/^\s*\{/.test(others[0] ?? '')
  }
}
