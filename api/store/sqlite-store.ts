/** The store in one SQLite file, through the SQLite that is built into Node. */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { createQueue } from '../process/serial-queue.ts'
import { Checkpoints } from './checkpoints.ts'
import type { AtOnce, Queries, RunStatement, Store } from './store.ts'

// How long to wait for another process that is writing, and how often to look.
const BUSY_TIMEOUT_MS = 10_000
const BUSY_PAUSE_MS = 2
const SQLITE_BUSY = 5
const SQLITE_FULL = 13

// Single statements and what is done at once, which counts requests, spare a sync each: a power cut may lose those since
// the log was last synced, which happens with each checkpoint. What is done in a transaction, keys above all, is lost by
// none.
const SYNC_NOW_AND_THEN = 'PRAGMA synchronous = NORMAL'
const SYNC_EACH = 'PRAGMA synchronous = FULL'

// Pages of the log from which on SQLite itself makes a checkpoint with each write: only where the thread of checkpoints
// does not keep up.
const LONGEST_LOG = 'PRAGMA wal_autocheckpoint = 10000'

/** Opens (or creates) the SQLite file at `path`. */
export async function openSqlite(path: string): Promise<Store> {
  const database = await openDatabase(path)
  const run = createRunStatement(database)
  const checkpoints = new Checkpoints(path)
  const queries: Queries = {
    query: async (sql, values = []) => run(sql, values),
    script: async (sql) => database.exec(sql),
  }
  // One connection, so a query of another request must not slip into a transaction that awaits something.
  const inTurn = createQueue()
  // SQLite counts what others commit, not what its own connection does.
  const dataVersion = database.prepare('PRAGMA data_version')
  const changesOfOthers = () => Number(dataVersion.get()?.['data_version'])
  const changesOfOthersThisTurn = createOnceATurn(() => unlessBusy(changesOfOthers))
  let ownTransactions = 0
  const transaction: Store['transaction'] = (work) =>
    inTurn(() => runTransaction(database, queries, work).finally(() => (ownTransactions += 1)))
  const versionAfter = createVersionText()

  return {
    query: (sql, values) => inTurn(() => whenFree(database, () => queries.query(sql, values))),
    script: (sql) => inTurn(() => whenFree(database, () => queries.script(sql))),
    transaction,
    longTransaction: transaction,
    atOnce: (kind, work) =>
      inTurn(() =>
        whenFree(database, async () =>
          runAtOnce({ database, run, checkpoints }, kind, (counted) =>
            work(counted, versionAfter(changesOfOthers(), ownTransactions)),
          ),
        ),
      ),
    version() {
      const changes = changesOfOthersThisTurn()
      return changes === undefined ? undefined : versionAfter(changes, ownTransactions)
    },
    // Nothing here waits for another machine.
    abandon: () => undefined,
    close: () =>
      inTurn(async () => {
        await checkpoints.close()
        database.close()
      }),
  }
}

async function openDatabase(path: string): Promise<DatabaseSync> {
  // A lock is waited for without holding up the event loop, see whenFree. SQLite's own waiting would not do: two
  // processes that turn a new file to WAL at once hold what the other wants, for which SQLite fails at once.
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    await whenFree(database, async () =>
      database.exec(`PRAGMA journal_mode = WAL; ${LONGEST_LOG}; ${SYNC_NOW_AND_THEN}`),
    )
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Asks once for all who want to know in the same turn of the event loop: the answer takes a lock on the file. */
function createOnceATurn<Answer>(ask: () => Answer): () => Answer {
  let asked: { readonly answer: Answer } | undefined
  return () => {
    if (asked === undefined) setImmediate(() => (asked = undefined))
    asked ??= { answer: ask() }
    return asked.answer
  }
}

/** A text for each pair of numbers; the same one while they stay, so that it is compared at once. */
function createVersionText(): (changes: number, transactions: number) => string {
  let last = { changes: -1, transactions: -1, text: '' }
  return (changes, transactions) => {
    if (changes !== last.changes || transactions !== last.transactions) {
      last = { changes, transactions, text: `${changes} ${transactions}` }
    }
    return last.text
  }
}

/** Undefined while another process holds a lock that even readers have to wait for. */
function unlessBusy<Answer>(ask: () => Answer): Answer | undefined {
  try {
    return ask()
  } catch (error) {
    if (isOfKind(error, SQLITE_BUSY)) return undefined
    throw error
  }
}

function createRunStatement(database: DatabaseSync): RunStatement {
  const known = new Map<string, Prepared>()
  return (sql, values) => {
    const prepared = known.get(sql) ?? prepare(database, sql)
    known.set(sql, prepared)
    const { statement, givesRows, places, count } = prepared
    if (values.length !== count) {
      throw new RangeError(`A statement with ${count} parameters was given ${values.length} values: ${sql}`)
    }
    const bound = places.map((place) => values[place - 1] ?? null)
    if (givesRows) return statement.all(...bound)
    statement.run(...bound)
    return []
  }
}

interface Prepared {
  readonly statement: StatementSync
  /** Whether there are rows to ask for; asked for where there are none, they cost a quarter of a write. */
  readonly givesRows: boolean
  /** The number of the value that stands at each place: 1 for `$1`. */
  readonly places: readonly number[]
  /** How many different values there are. */
  readonly count: number
}

// Bound by place: SQLite looks for the name of each parameter among all the others, which takes longer than the
// writing where a statement has hundreds of them.
function prepare(database: DatabaseSync, sql: string): Prepared {
  const places = Array.from(sql.matchAll(/\$(\d+)/g), ([, number]) => Number(number))
  const statement = database.prepare(sql.replaceAll(/\$\d+/g, '?'))
  return {
    statement,
    givesRows: statement.columns().length > 0,
    places,
    count: places.reduce((most, place) => Math.max(most, place), 0),
  }
}

interface AtOnceTools {
  readonly database: DatabaseSync
  readonly run: RunStatement
  readonly checkpoints: Checkpoints
}

function runAtOnce<Result>(
  { database, run, checkpoints }: AtOnceTools,
  kind: Parameters<AtOnce>[0],
  work: (run: RunStatement) => Result,
): Result {
  let statements = 0
  const runCounted: RunStatement = (sql, values) => {
    statements += 1
    return run(sql, values)
  }
  // Who is going to write takes the lock for it at once, so that nobody changes what it reads.
  run(kind === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN', [])
  try {
    const result = work(runCounted)
    run('COMMIT', [])
    if (kind === 'write') checkpoints.note(statements)
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

async function runTransaction<Result>(
  database: DatabaseSync,
  queries: Queries,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  database.exec(SYNC_EACH)
  try {
    // IMMEDIATE takes the write lock at once: a transaction that read first could not be upgraded safely.
    await whenFree(database, () => queries.script('BEGIN IMMEDIATE'))
    const result = await work(queries)
    database.exec('COMMIT')
    beginLogAnew(database)
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  } finally {
    database.exec(SYNC_NOW_AND_THEN)
  }
}

// Runs one statement once no other process is writing. A statement that met a lock, or a full disk, has done nothing
// yet. On a full disk there is room where the log can be written from its start again.
async function whenFree<Result>(database: DatabaseSync, statement: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + BUSY_TIMEOUT_MS
  let isAnew = false
  for (;;) {
    try {
      return await statement()
    } catch (error) {
      const mayHelp = isOfKind(error, SQLITE_BUSY) || (isOfKind(error, SQLITE_FULL) && !isAnew)
      if (!mayHelp || performance.now() >= deadline) throw error
      if (isOfKind(error, SQLITE_FULL) && beginLogAnew(database)) isAnew = true
      else await sleep(BUSY_PAUSE_MS)
    }
  }
}

// Moves what stands in the log to its place in the file. Made while the disk has room, that gives the file the size
// it needs, so that requests are counted on a full disk too. False while somebody else reads in the log, or moves it.
function beginLogAnew(database: DatabaseSync): boolean {
  try {
    return database.prepare('PRAGMA wal_checkpoint(RESTART)').get()?.['busy'] === 0
  } catch {
    // The log is as good as it was, and will be.
    return true
  }
}

function isOfKind(error: unknown, ...kinds: readonly number[]): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false
  // The low byte is the kind; what stands above it tells more of it, such as "busy: being recovered".
  return kinds.includes(error.errcode & 0xff)
}
