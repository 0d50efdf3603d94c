import { DataError } from '../../errors.ts'
import { literal, pathPattern } from '../../duckdb/sql-values.ts'
import type { RawFile } from '../drop-folder.ts'

/**
 * A file's path for DuckDB's readers, with `*`, `?` and `[` escaped, which they read as patterns.
 * @throws DataError if there is a backslash too: in a pattern it separates folders, and cannot be escaped.
 */
export function exactPath({ path, name }: RawFile): string {
  const pattern = pathPattern(path)
  if (pattern === path || !path.includes('\\')) return pattern
  throw new DataError(
    `${name} cannot be read: its path has a backslash beside one of * ? [, and DuckDB finds no such file. ` +
      'Rename the file, or the folder above it',
  )
}

/** The path as an SQL literal. */
export function pathLiteral(file: RawFile): string {
  return literal(exactPath(file))
}
