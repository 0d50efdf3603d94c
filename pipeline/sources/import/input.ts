/** The files of an import: finds their format and compression from name or content. */
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../program/program.ts'
import { DataError } from '../../errors.ts'
import { isSkipped, kindNamed, statFile } from '../drop-folder.ts'
import type { Format, RawFile } from '../drop-folder.ts'
import { readHead } from '../formats/bytes.ts'

/** The values of `--format`. */
export const FORMATS: readonly Format[] = ['ndjson', 'csv', 'parquet', 'arrow']

/** The first bytes of formats and compressions, in hex. */
const GZIP = /^1f8b/
const ZSTD = /^28b52ffd/
const ZSTD_BEHIND_LENGTH = /^.{8}28b52ffd/
const PARQUET = /^50415231/
const ARROW = /^(?:4152524f5731|ffffffff)/
const UTF_16 = /^(?:fffe|feff)/

/** The files of the arguments, and all files in their folders, by name. */
export function filesNamed(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path]
    const files = globSync('**', { cwd: path, withFileTypes: true, exclude: ({ name }) => isSkipped(name) })
      .map(({ parentPath, name }) => join(parentPath, name))
      // Follows links, and keeps one that leads nowhere, which is an error.
      .filter((file) => statSync(file, { throwIfNoEntry: false })?.isDirectory() !== true)
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
): Promise<RawFile> {
  const file = { path, name, format: 'csv', ...statFile(path, name) } as const
  const packed = await readHead({ ...file, compression: 'none' })
  const start = packed.toString('hex', 0, 8)
  if (ZSTD_BEHIND_LENGTH.test(start)) {
    throw new DataError(
      `${name} has zstd frames, each behind its length, as the OpenTelemetry Collector writes with compression: zstd. ` +
        'Unpack it into one JSON document per line, or remove that setting there',
    )
  }
  const compression = GZIP.test(start) ? 'gz' : ZSTD.test(start) ? 'zst' : 'none'
  const head = compression === 'none' ? packed : await readHead({ ...file, compression })
  if (UTF_16.test(head.toString('hex', 0, 2))) {
    throw new DataError(`${name} is text in UTF-16: write it in UTF-8`)
  }
  return { ...file, format: formatOf(head, format ?? kindNamed(name)?.format), compression }
}

/** @param known by option or name. */
function formatOf(head: Buffer, known: Format | undefined): Format {
  const start = head.toString('hex', 0, 8)
  const text = head.toString('utf8')
  if (known !== undefined && known !== 'ndjson') return known
  if (known === 'ndjson' || /^\uFEFF?\s*[[{]/.test(text)) return isWholeJson(text) ? 'json' : 'ndjson'
  if (PARQUET.test(start)) return 'parquet'
  return ARROW.test(start) ? 'arrow' : 'csv'
}

/** Whether a text is one JSON document: a list, or an object that continues in the next line. */
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
