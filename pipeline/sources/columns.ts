/** The columns a kind of raw input has. */
import { DataError } from '../errors.ts'
import type { RawFile } from './drop-folder.ts'

/** Names in lower case; further columns of a file are ignored. */
export type Columns = {
  readonly required: readonly string[]
  readonly optional: readonly string[]
}

/** The columns of raw usage (CONTRACT 7). */
export const USAGE_COLUMNS: Columns = {
  required: ['ts', 'app_id', 'prompt_tokens', 'completion_tokens'],
  optional: ['requests', 'request_id'],
}

export function allColumns({ required, optional }: Columns): readonly string[] {
  return [...required, ...optional]
}

/** What stands in no name: the bytes of a compressed file, for instance, or of UTF-16, taken for UTF-8. */
const NO_TEXT = /\uFFFD|(?!\t)\p{Cc}/u

/** Throws a DataError that names the columns a file lacks. */
export function requireColumns(file: RawFile, found: readonly string[], required: readonly string[]): void {
  const missing = required.filter((column) => !found.includes(column))
  if (missing.length === 0) return
  const instead = found.some((name) => NO_TEXT.test(name))
    ? 'What it begins with is no text in UTF-8; the name of a compressed file ends in .gz or .zst'
    : `Its columns are: ${found.join(', ') || 'none'}`
  throw new DataError(`${file.name} has no column ${missing.join(', ')}. ${instead}`)
}
