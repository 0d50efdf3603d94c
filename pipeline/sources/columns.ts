/** The columns of raw input, and how the columns of a file match them: one rule for every format. */
import { DataError } from '../errors.ts'
import type { RawFile } from './drop-folder.ts'

/** Columns of a kind of raw input, names in lower case; further columns of a file are ignored. */
export type Columns = {
  readonly required: readonly string[]
  readonly optional: readonly string[]
  /** A required column and its alternative. If a row leaves the alternative empty, it names no app. */
  readonly instead?: Readonly<Record<string, string>>
  /** Descriptive columns: their values never invalidate a row or a file. */
  readonly descriptive?: readonly string[]
  /** Columns that may hold a list. */
  readonly lists?: readonly string[]
}

/** The columns of raw usage (CONTRACT 7). */
export const USAGE_COLUMNS = {
  required: ['ts', 'app_id', 'prompt_tokens', 'completion_tokens'],
  optional: ['app', 'requests', 'request_id'],
  instead: { app_id: 'app' },
  descriptive: [
    'model',
    'reasoning_tokens',
    'cached_tokens',
    'provider',
    'account_id',
    'app_title',
    'app_categories',
  ],
  lists: ['app_categories'],
} as const satisfies Columns

export function allColumns({ required, optional, descriptive = [] }: Columns): readonly string[] {
  return [...required, ...optional, ...descriptive]
}

/** Whether a broken value in the column invalidates its row. */
export function isDecisive({ required, optional }: Columns, column: string): boolean {
  return required.includes(column) || optional.includes(column)
}

/** Whether the column is an alternative to another one; in a file with it, every row has a text there. */
export function isInstead({ instead = {} }: Columns, column: string): boolean {
  return Object.values(instead).includes(column)
}

/** Normalises a name: capitals and surrounding spaces do not count. */
export function plainName(name: string): string {
  return name.trim().toLowerCase()
}

/** Characters that no name has: they show compressed bytes, or UTF-16, read as UTF-8. */
const NO_TEXT = /\uFFFD|(?!\t)\p{Cc}/u

/**
 * The positions of the columns among the names of a file. A descriptive column that occurs twice is ignored.
 * @throws DataError with the columns that a file lacks or has twice.
 */
export function matchColumns(
  file: RawFile,
  found: readonly string[],
  columns: Columns,
): ReadonlyMap<string, number> {
  const names = found.map(plainName)
  const matched = new Map<string, number>()
  for (const column of allColumns(columns)) {
    const [position, second] = names.flatMap((name, index) => (name === column ? [index] : []))
    if (second === undefined) {
      if (position !== undefined) matched.set(column, position)
    } else if (isDecisive(columns, column)) {
      throw new DataError(
        `${file.name} names the column "${column}" twice: as "${found[position ?? 0]}" and as "${found[second]}". ` +
          'Remove one of them',
      )
    }
  }
  const missing = columns.required.filter(
    (column) => !namesFor(columns, column).some((name) => matched.has(name)),
  )
  if (missing.length > 0) throw withoutColumns(file, found, missing)
  return matched
}

/** The accepted names of a required column. */
export function namesFor({ instead }: Columns, column: string): readonly string[] {
  const other = instead?.[column]
  return other === undefined ? [column] : [column, other]
}

function withoutColumns(file: RawFile, found: readonly string[], missing: readonly string[]): DataError {
  const instead = found.some((name) => NO_TEXT.test(name))
    ? 'It does not begin with UTF-8 text; the name of a compressed file ends in .gz or .zst'
    : `Its columns are: ${found.join(', ') || 'none'}`
  return new DataError(`${file.name} has no column ${missing.join(', ')}. ${instead}`)
}
