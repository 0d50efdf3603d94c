/** The files of an import: finds their format and compression from name or content. */
import { globSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../../program/program.ts'
import { DataError } from '../../errors.ts'
import { isSkipped, kindNamed, statFile } from '../drop-folder.ts'
import type { Compression, Format, RawFile } from '../drop-folder.ts'
import { readHead } from '../formats/bytes.ts'

/** The values of `--format`. */
export const FORMATS: readonly Format[] = ['ndjson', 'csv', 'parquet', 'arrow']

export type Input = {
  readonly file: RawFile
  /** One JSON document, such as a list over several lines, instead of one object per line. */
  readonly isWholeJson: boolean
}

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
  const facts = statFile(path, name)
  const start = await firstBytes(path)
  if (start.subarray(4).equals(MAGIC.zst)) {
    throw new DataError(
      `${name} has zstd frames, each behind its length, as the OpenTelemetry Collector writes with compression: zstd. ` +
        'Unpack it into one JSON document per line, or remove that setting there',
    )
  }
  const compression = compressionOf(start)
  const head = await readHead({ path, name, format: 'csv', compression, ...facts })
  const found = format ?? kindNamed(name)?.format ?? formatOf(head)
  return {
    file: { path, name, format: found, compression, ...facts },
    isWholeJson: found === 'ndjson' && isWholeJson(head.toString('utf8')),
  }
}

async function firstBytes(path: string): Promise<Buffer> {
  await using handle = await open(path)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(8), 0, 8, 0)
  return buffer.subarray(0, bytesRead)
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
