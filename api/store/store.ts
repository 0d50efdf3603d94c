/**
 * The transactional store for everything but the dataset (accounts, keys, limits, directories): an SQLite file
 * (sqlite-store.ts) or a PostgreSQL database (postgres-store.ts), which several processes may share. Both have the
 * tables of migrations/ and run the same queries, with `$1`, `$2` … and common SQL.
 */
import { setImmediate as endOfTurn } from 'node:timers/promises'

/** How long a request waits for the store, in ms. */
export const REQUEST_WAIT_MS = 2000

/** Values of query parameters. Booleans are 0 and 1, times are ISO 8601 text. */
export type Value = string | number | null
export type Row = Readonly<Record<string, unknown>>

/**
 * Runs SQL; the caller parses the rows. Both databases return texts, numbers (also for counts, sums and booleans) and
 * null; a whole number that JavaScript cannot represent is an error.
 */
export interface Queries {
  /** Runs one statement with `values` bound to `$1`, `$2` … */
  query(sql: string, values?: readonly Value[]): Promise<readonly Row[]>
  /** Runs several statements without parameters, such as a migration. */
  script(sql: string): Promise<void>
}

export interface Store extends Queries {
  /**
   * Runs `work` as one transaction, serialized with all others on the same database, in any process; rolls back if
   * `work` throws. Keep it short: other writes wait meanwhile. In PostgreSQL, queries outside of transactions may run
   * meanwhile: what must be exact without a transaction has to be one statement. `work` may use only the given
   * `queries`, since the store itself may wait for its end.
   */
  transaction<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>
  /** Waits for pending queries, but not for a silent database, and closes the connections. */
  close(): Promise<void>
}

/** Rows of one INSERT. */
const ROWS_PER_STATEMENT = 100

/** Inserts rows of values into `table`, then `after`, such as ON CONFLICT. Other work gets its turn between statements. */
export async function insertRows(
  queries: Queries,
  { table, columns, after = '' }: { readonly table: string; columns: readonly string[]; after?: string },
  rows: readonly (readonly Value[])[],
): Promise<void> {
  for (let first = 0; first < rows.length; first += ROWS_PER_STATEMENT) {
    const batch = rows.slice(first, first + ROWS_PER_STATEMENT)
    await queries.query(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${places(columns.length, batch.length)} ${after}`,
      batch.flat(),
    )
    await endOfTurn()
  }
}

/** The parameters of as many rows: `($1, $2), ($3, $4)`. */
export function places(columns: number, rows: number): string {
  const row = (first: number) => Array.from({ length: columns }, (_, index) => `$${first + index}`).join(', ')
  return Array.from({ length: rows }, (_, index) => `(${row(index * columns + 1)})`).join(', ')
}
