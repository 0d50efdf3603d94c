/** The columns of raw input, and how those of a file are matched with them: one rule for every format. */
import { DataError } from '../errors.ts'
import type { RawFile } from './drop-folder.ts'

/** Columns that a kind of raw input has, names in lower case; any others of a file are ignored. */
export type Columns = {
  readonly required: readonly string[]
  readonly optional: readonly string[]
  /** Required columns with the one that may stand in a file instead. Where a row leaves it empty, it names nothing. */
  readonly instead?: Readonly<Record<string, string>>
  /** Read where a value is there; whatever stands in them decides nothing about a row or a file. */
  readonly descriptive?: readonly string[]
  /** Those that may hold a list. */
  readonly lists?: readonly string[]
}

/** The columns of raw usage (CONTRACT 7). */
export const USAGE_COLUMNS = {
  required: ['ts', 'app_id', 'prompt_tokens', 'completion_tokens'],
  optional: ['app', 'requests', 'request_id'],
  instead: { app_id: 'app' },
  descriptive: ['model', 'reasoning_tokens', 'cached_tokens', 'provider'],
} as const satisfies Columns

export function allColumns({ required, optional, descriptive = [] }: Columns): readonly string[] {
  return [...required, ...optional, ...descriptive]
}

/** Whether a value in the column decides about its row, so that it must be readable. */
export function isDecisive({ required, optional }: Columns, column: string): boolean {
  return required.includes(column) || optional.includes(column)
}

/** Whether the column may stand instead of another one: of a file that has it, no row is without a text in it. */
export function isInstead({ instead = {} }: Columns, column: string): boolean {
  return Object.values(instead).includes(column)
}

/** A name as it is compared: capitals and spaces around it do not count. */
export function plainName(name: string): string {
  return name.trim().toLowerCase()
}

/** What stands in no name: the bytes of a compressed file, for instance, or of UTF-16, taken for UTF-8. */
const NO_TEXT = /\uFFFD|(?!\t)\p{Cc}/u

/**
 * The positions of the columns among the names that a file has. A descriptive column that is given twice is none.
 * @throws DataError that names the columns which a file lacks, or gives twice.
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
          'Take one of them out',
      )
    }
  }
  const missing = columns.required.filter(
    (column) => !namesFor(columns, column).some((name) => matched.has(name)),
  )
  if (missing.length > 0) throw withoutColumns(file, found, missing)
  return matched
}

/** The names under which a file may have a required column. */
export function namesFor({ instead }: Columns, column: string): readonly string[] {
  const other = instead?.[column]
  return other === undefined ? [column] : [column, other]
}

function withoutColumns(file: RawFile, found: readonly string[], missing: readonly string[]): DataError {
  const instead = found.some((name) => NO_TEXT.test(name))
    ? 'What it begins with is no text in UTF-8; the name of a compressed file ends in .gz or .zst'
    : `Its columns are: ${found.join(', ') || 'none'}`
  return new DataError(`${file.name} has no column ${missing.join(', ')}. ${instead}`)
}
