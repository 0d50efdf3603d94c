/** The files of an import: finds their format and compression from their content. */
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../program/program.ts'
import { isSkipped, statFile, type Format, type RawFile } from '../drop-folder.ts'
import { contentOf, headText, readHead } from '../formats/bytes.ts'

/** Stands for standard input. */
export const STDIN = '-'

/**
 * The files of the arguments, and all files in their folders, by name.
 * @throws UsageError with an argument that is neither, or a folder without a file.
 */
export function filesNamed(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    if (path === STDIN) return [path]
    const facts = statSync(path, { throwIfNoEntry: false })
    if (facts === undefined) throw new UsageError(`${path} does not exist`)
    if (facts.isFile()) return [path]
    if (!facts.isDirectory()) {
      throw new UsageError(`${path} is not a file: lead it to standard input, and write ${STDIN} for FILE`)
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
 * @throws DataError if there is no such file, or none of a known format.
 */
export async function inspectInput(path: string, name = path): Promise<RawFile> {
  const file = { path, name, format: 'csv', ...statFile(path, name) } as const
  const packed = await readHead({ ...file, compression: 'none' })
  const content = contentOf(packed)
  const compression = content === 'gz' || content === 'zst' ? content : 'none'
  const head = compression === 'none' ? packed : await readHead({ ...file, compression })
  return { ...file, format: formatOf(file, head), compression }
}

function formatOf(file: Pick<RawFile, 'name'>, head: Buffer): Format {
  const content = contentOf(head)
  if (content === 'parquet' || content === 'arrow') return content
  return /^\uFEFF?\s*(?:\{|\[\s*[[{\]])/.test(headText(file, head)) ? 'ndjson' : 'csv'
}
