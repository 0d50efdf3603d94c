/**
 * The transactional store of all that is not the dataset (accounts, keys, quotas, apps, directories), as its users see
 * it: an SQLite file (sqlite-store.ts) or a PostgreSQL database (postgres-store.ts), which several processes may share.
 * Both have the tables of migrations/ and are asked the same queries, written with `$1`, `$2` … in the SQL that both
 * understand.
 */

/** What can be bound to a query. Booleans are stored as 0 and 1, times as ISO 8601 text. */
export type Value = string | number | null
export type Row = Readonly<Record<string, unknown>>

/**
 * Runs SQL; rows come back as the database gives them and are parsed by the caller. Both databases give texts,
 * numbers (counts, sums and truth values too) and null; a whole number that JavaScript cannot hold is an error.
 */
export interface Queries {
  /** Runs one statement with `values` bound to `$1`, `$2` … */
  query(sql: string, values?: readonly Value[]): Promise<readonly Row[]>
  /** Runs several statements without parameters, such as a migration. */
  script(sql: string): Promise<void>
}

export interface Store extends Queries {
  /**
   * Runs `work` as one transaction, while no other transaction runs on the same database, in whatever process; it
   * is undone when `work` throws. Queries outside of transactions may run meanwhile in PostgreSQL: what must be
   * exact without a transaction has to be one statement. Within `work` only the `queries` it is given may be used:
   * the store itself may wait for its end.
   */
  transaction<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>
  /**
   * The same for work that takes long: in PostgreSQL other transactions run meanwhile. Rows that `work` relies on it
   * has to write before it ends, which fails or waits when others changed them.
   */
  longTransaction<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>
  /** Breaks the connections: what waits for the database, and whatever is asked from now on, fails at once. */
  abandon(): void
  /** Waits for what is under way and closes the connections. */
  close(): Promise<void>
}
