/** The columns of raw input, and how those of a file match them: one rule for every format. */
import { DataError } from '../errors.ts'

/** Columns of a kind of raw input, names in lower case; further columns of a file are ignored. */
export type Columns<Name extends string = string> = {
  readonly required: readonly Name[]
  readonly optional: readonly Name[]
  /** Descriptive columns: their values never invalidate a row or a file. */
  readonly descriptive?: readonly Name[]
}

/** The columns of raw usage (CONTRACT 7). */
export const USAGE_COLUMNS = {
  required: ['ts', 'app_id', 'prompt_tokens', 'completion_tokens'],
  optional: ['app', 'requests', 'request_id'],
  descriptive: [
    'model',
    'reasoning_tokens',
    'cached_tokens',
    'provider',
    'account_id',
    'app_title',
    'app_categories',
  ],
} as const satisfies Columns

/** The columns of a day pulled from a cluster: `row_count` is how many raw rows a row stands for. */
export const PULLED_COLUMNS: Columns = {
  ...USAGE_COLUMNS,
  optional: [...USAGE_COLUMNS.optional, 'row_count'],
}

/** The column that may name an app instead of `app_id`. A row that leaves it empty names no app. */
export const APP_TEXT = 'app'

/** The columns that may hold a list. */
export const LISTS = ['app_categories', 'subcategories']

export function allColumns<Name extends string>(columns: Columns<Name>): readonly Name[] {
  const { required, optional, descriptive = [] } = columns
  return [...required, ...optional, ...descriptive]
}

/** Whether a broken value in the column invalidates its row. */
export function isValidated({ required, optional }: Columns, column: string): boolean {
  return required.includes(column) || optional.includes(column)
}

/** The texts that text formats may write as a word for null (CONTRACT 7); in numbers `count_from_text` knows these words. */
export const NULLABLE_TEXTS = [APP_TEXT, 'request_id']

/** Normalises a name: capitals and surrounding spaces do not count. */
export function plainName(name: string): string {
  return name.trim().toLowerCase()
}

/** The required columns that are not among the names. */
export function missingColumns({ required }: Columns, names: readonly string[]): readonly string[] {
  const found = names.includes(APP_TEXT) ? [...names, 'app_id'] : names
  return required.filter((column) => !found.includes(column))
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
