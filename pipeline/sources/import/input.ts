/** The files of an import: finds their format and compression from name or content. */
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../program/program.ts'
import { isSkipped, kindNamed, statFile, type Format, type RawFile } from '../drop-folder.ts'
import { contentOf, headText, readHead } from '../formats/bytes.ts'

/** The values of `--format`. */
export const FORMATS: readonly Format[] = ['ndjson', 'csv', 'parquet', 'arrow']

/** One JSON document: a list, or an object that does not end in its first line. */
const WHOLE_JSON = /^\uFEFF?\s*(?:\[|\{[^\n]*(?<!\}\s*)\n\s*[^\s{])/

/** Stands for standard input. */
export const STDIN = '-'

/**
 * The files of the arguments, and all files in their folders, by name.
 * @throws UsageError with an argument that is neither.
 */
export function filesNamed(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    if (path === STDIN) return [path]
    const facts = statSync(path, { throwIfNoEntry: false })
    if (facts === undefined) throw new UsageError(`${path} does not exist`)
    if (facts.isFile()) return [path]
    if (!facts.isDirectory()) {
      throw new UsageError(
        `${path} is not a file: write ${STDIN} for FILE, and lead a pipe to standard input`,
      )
    }
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
  const content = contentOf(packed)
  const compression = content === 'gz' || content === 'zst' ? content : 'none'
  const head = compression === 'none' ? packed : await readHead({ ...file, compression })
  return { ...file, format: formatOf(file, head, format ?? kindNamed(name)?.format), compression }
}

/**
 * @param known by option or name.
 * @throws DataError for a text file that holds something else.
 */
function formatOf(file: Pick<RawFile, 'name'>, head: Buffer, known: Format | undefined): Format {
  const content = contentOf(head)
  const format = known ?? (content === 'parquet' || content === 'arrow' ? content : undefined)
  if (format === 'parquet' || format === 'arrow') return format
  const text = headText(file, head)
  if (format === 'csv' || (format === undefined && !/^\uFEFF?\s*[[{]/.test(text))) return 'csv'
  return WHOLE_JSON.test(text) ? 'json' : 'ndjson'
}
