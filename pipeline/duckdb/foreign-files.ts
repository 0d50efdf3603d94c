/** Detects files that DuckDB would open with an extension, which it would load or download. */
import { closeSync, openSync, readSync } from 'node:fs'

/** Stops DuckDB from installing or loading extensions by itself; all required ones are built in. */
export const NO_EXTENSIONS = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
}

const MARK = Buffer.from('DUCK')
const MARK_PLACE = 8
const SQLITE = Buffer.from('SQLite format 3')

/**
 * The kind of a file that DuckDB must not open, by its first bytes; undefined for a DuckDB file, an empty file, and a file
 * that is missing or unreadable.
 */
export function foreignKind(path: string): string | undefined {
  const start = firstBytes(path, SQLITE.length)
  if (start.length === 0 || start.subarray(MARK_PLACE, MARK_PLACE + MARK.length).equals(MARK))
    return undefined
  return start.equals(SQLITE) ? 'an SQLite database' : 'not a DuckDB database'
}

function firstBytes(path: string, count: number): Buffer {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const bytes = Buffer.alloc(count)
    return bytes.subarray(0, readSync(file, bytes, 0, count, 0))
  } catch {
    // DuckDB reports why the file cannot be opened.
    return Buffer.alloc(0)
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
