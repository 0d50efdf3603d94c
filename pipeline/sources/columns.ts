/** The columns of raw input, and how those of a file match them: one rule for every format. */
import { DataError } from '../errors.ts'

/** Columns of a kind of raw input, names in lower case; further columns of a file are ignored. */
export type Columns = {
  readonly required: readonly string[]
  readonly optional: readonly string[]
  /** A required column and its alternative. A row that leaves the alternative empty names no app. */
  readonly alternative?: Readonly<Record<string, string>>
  /** Descriptive columns: their values never invalidate a row or a file. */
  readonly descriptive?: readonly string[]
  /** Columns that may hold a list. */
  readonly lists?: readonly string[]
}

/** The columns of raw usage (CONTRACT 7). */
export const USAGE_COLUMNS = {
  required: ['ts', 'app_id', 'prompt_tokens', 'completion_tokens'],
  optional: ['app', 'requests', 'request_id'],
  alternative: { app_id: 'app' },
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

/** The columns of a day pulled from a cluster: `row_count` is how many raw rows a row stands for. */
export const PULLED_COLUMNS: Columns = {
  ...USAGE_COLUMNS,
  optional: [...USAGE_COLUMNS.optional, 'row_count'],
}

export function allColumns({ required, optional, descriptive = [] }: Columns): readonly string[] {
  return [...required, ...optional, ...descriptive]
}

/** Whether a broken value in the column invalidates its row. */
export function isValidated({ required, optional }: Columns, column: string): boolean {
  return required.includes(column) || optional.includes(column)
}

/** Whether the column is the alternative to another one. */
export function isAlternative({ alternative = {} }: Columns, column: string): boolean {
  return Object.values(alternative).includes(column)
}

/** The texts that text formats may write as a word for null (CONTRACT 7); in numbers `count_from_text` knows these words. */
export const NULLABLE_TEXTS = ['app', 'request_id']

/** Normalises a name: capitals and surrounding spaces do not count. */
export function plainName(name: string): string {
  return name.trim().toLowerCase()
}

/** The required columns that are not among the names, also not by their alternative. */
export function missingColumns(
  { required, alternative }: Columns,
  names: readonly string[],
): readonly string[] {
  return required.filter(
    (column) => !names.includes(column) && !names.includes(alternative?.[column] ?? column),
  )
}

/**
 * The positions of the columns among the names of a file. A descriptive column that occurs twice is ignored.
 * @param file its name, for messages.
 * @throws DataError with the columns that a file lacks or has twice.
 */
export function matchColumns(
  file: string,
  found: readonly string[],
  columns: Columns,
): ReadonlyMap<string, number> {
  const names = found.map(plainName)
  const missing = missingColumns(columns, names)
  if (missing.length > 0) {
    const present = found.join(', ').slice(0, 1000) || 'none'
    throw new DataError(
      `${file} has no column ${missing.join(', ')}. Its columns are: ${present}. ` +
        'Name its columns so; CSV names them in a first line that ends in \\n, separated by commas',
    )
  }
  const matched = new Map<string, number>()
  for (const column of allColumns(columns)) {
    const [position, second] = [names.indexOf(column), names.lastIndexOf(column)]
    if (position === second && position >= 0) matched.set(column, position)
    if (position !== second && isValidated(columns, column)) {
      throw new DataError(
        `${file} names the column "${column}" twice: as "${found[position]}" and as "${found[second]}". ` +
          'Remove one of them',
      )
    }
  }
  return matched
}
