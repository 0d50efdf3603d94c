/** DuckDB takes a file for what it looks like, and would load or fetch an extension for one of another database. */
import { closeSync, openSync, readSync } from 'node:fs'

/** Settings by which DuckDB neither installs nor loads an extension by itself; what is needed is built in. */
export const NO_EXTENSIONS = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
}

const MARK = Buffer.from('DUCK')
const MARK_PLACE = 8
const SQLITE = Buffer.from('SQLite format 3')

/**
 * What a file is that no DuckDB may be asked to open, by its first bytes; undefined for one of DuckDB, for an empty one,
 * and for one that is not there or may not be read.
 */
export function foreignKind(path: string): string | undefined {
  const start = firstBytes(path, SQLITE.length)
  if (start.length === 0 || start.subarray(MARK_PLACE, MARK_PLACE + MARK.length).equals(MARK))
    return undefined
  return start.equals(SQLITE) ? 'an SQLite database' : 'no DuckDB database'
}

function firstBytes(path: string, count: number): Buffer {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const bytes = Buffer.alloc(count)
    return bytes.subarray(0, readSync(file, bytes, 0, count, 0))
  } catch {
    // DuckDB says why it cannot be opened.
    return Buffer.alloc(0)
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
