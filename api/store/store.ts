/**
 * The transactional store for everything but the dataset (accounts, keys, limits, directories): an SQLite file
 * (sqlite-store.ts) or a PostgreSQL database (postgres-store.ts), which several processes may share. Both have the
 * tables of migrations/ and run the same queries, with `$1`, `$2` … and common SQL.
 */
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { ApiError, busy } from '../http/errors.ts'
import type { Log } from '../process/log.ts'

/** Values of query parameters. Booleans are 0 and 1, times are ISO 8601 text. */
export type Value = string | number | null
export type Row = Readonly<Record<string, unknown>>

/** Runs SQL; the caller parses the rows. Both databases return texts, numbers (also for counts, sums and booleans) and null. */
export type Queries = {
  /** Runs one statement with `values` bound to `$1`, `$2` … */
  query(sql: string, values?: readonly Value[]): Promise<readonly Row[]>
}

export type Store = Queries &
  AsyncDisposable & {
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

/** How long a request waits for the store, in ms, and then its client. */
export const REQUEST_WAIT_MS = 2000

/**
 * The store for requests: they get a 503 if it fails or is slow, however long other users wait for it. A failure is logged
 * once until the store answers again.
 */
export function createRequestStore(store: Queries, log: Log) {
  let isFailing = false
  /** Bounds the wait for work on the store, such as a transaction. */
  async function bounded<Result>(pending: Promise<Result>): Promise<Result> {
    const { promise: tooLate, reject } = Promise.withResolvers<never>()
    // A setTimeout, since aborting timers/promises costs more than the query.
    const timer = setTimeout(
      () => reject(new Error(`The store has not answered for ${REQUEST_WAIT_MS} ms`)),
      REQUEST_WAIT_MS,
    )
    try {
      const result = await Promise.race([pending, tooLate])
      if (isFailing) log.info('the store answers again')
      isFailing = false
      return result
    } catch (error) {
      // The work may reject the request itself.
      if (error instanceof ApiError) throw error
      if (!isFailing) log.error({ err: error }, 'the store does not answer; requests that need it get 503')
      isFailing = true
      throw busy('Keys, limits and groups are temporarily unavailable')
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    bounded,
    query: (...statement: Parameters<Queries['query']>) => bounded(store.query(...statement)),
  }
}

/** Questions that are answered together at most: each number of them is a statement of its own. */
const TOGETHER_AT_MOST = 64

/**
 * Collects the questions of one turn of the event loop, since a statement costs the same for one row and for many.
 * @param answerAll answers them; the result returns each question's answer, and is called in the order of the questions.
 */
export function collectTurn<Question, Answer>(
  answerAll: (questions: readonly Question[]) => Promise<(question: Question) => Answer>,
): (question: Question) => Promise<Answer> {
  let turn: { readonly questions: Question[]; readonly answered: ReturnType<typeof answerAll> } | undefined
  return async (question) => {
    if (turn === undefined || turn.questions.length === TOGETHER_AT_MOST) {
      const questions: Question[] = []
      const answered = endOfTurn().then(() => {
        if (turn?.questions === questions) turn = undefined
        return answerAll(questions)
      })
      turn = { questions, answered }
    }
    turn.questions.push(question)
    return (await turn.answered)(question)
  }
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
