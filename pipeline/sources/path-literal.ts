import { literal } from '../warehouse.ts'

/** A path for DuckDB's readers, which would take `*`, `?` and `[` in it for a pattern. */
export function exactPath(path: string): string {
  return path.replaceAll(/[[*?]/g, '[$&]')
}

/** The same as SQL literal. */
export function pathLiteral(path: string): string {
  return literal(exactPath(path))
}
