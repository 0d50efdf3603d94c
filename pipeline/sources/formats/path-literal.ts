import { DataError } from '../../errors.ts'
import { literal, pathPattern } from '../../duckdb/sql-values.ts'
import type { RawFile } from '../drop-folder.ts'

/**
 * A file's path for DuckDB's readers, which would take `*`, `?` and `[` in it for a pattern.
 * @throws DataError when there is a backslash as well: in a pattern it parts folders, and nothing stands for it.
 */
export function exactPath({ path, name }: RawFile): string {
  const pattern = pathPattern(path)
  if (pattern === path || !path.includes('\\')) return pattern
  throw new DataError(
    `${name} cannot be read: its path has a backslash beside one of * ? [, and DuckDB finds no such file. ` +
      'Rename the file, or the folder above it',
  )
}

/** The same as SQL literal. */
export function pathLiteral(file: RawFile): string {
  return literal(exactPath(file))
}
