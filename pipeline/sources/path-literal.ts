import { literal } from '../warehouse.ts'

/** A path as SQL literal for DuckDB's readers, which would take `*`, `?` and `[` in it for a pattern. */
export function pathLiteral(path: string): string {
  return literal(path.replaceAll(/[[*?]/g, '[$&]'))
}
