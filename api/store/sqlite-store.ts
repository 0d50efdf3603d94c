/** The store in one SQLite file, through Node's built-in SQLite. */
import { statSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { setImmediate as endOfTurn, setTimeout as sleep } from 'node:timers/promises'
import { createSerialQueue, type SerialQueue } from '../process/serial-queue.ts'
import type { Queries, Row, Store, Value } from './store.ts'

// How long to wait for another writing process, and how often to check.
const BUSY_TIMEOUT_MS = 10_000
const BUSY_PAUSE_MS = 2
const SQLITE_BUSY = 5
const SQLITE_FULL = 13

// Single statements, which count requests, are not synced: a power cut may lose the ones since the last checkpoint of
// the WAL. Transactions, above all of keys, are synced and never lost.
const SYNC_AT_CHECKPOINTS = 'PRAGMA synchronous = NORMAL'
const SYNC_EACH = 'PRAGMA synchronous = FULL'

/**
 * How long single statements rely on the last check of the file. Transactions always check, since they must not be
 * lost.
 */
const LOOK_EVERY_MS = 1000

/** Runs one statement to its end. */
type RunStatement = (sql: string, values: readonly Value[]) => readonly Row[]

/** Opens or creates the SQLite file at `path`. */
export async function openSqlite(path: string): Promise<Store> {
  const database = await openDatabase(path)
  const run = createRunStatement(database)
  const opened = fileAt(path)
  let lookedAt = 0
  // The connection would go on with a file that nobody else sees.
  const refuseOther = (knownForMs: number) => {
    if (performance.now() - lookedAt < knownForMs) return
    if (fileAt(path) !== opened) {
      throw new Error(`${path} was replaced or deleted while it was open: restart the service`)
    }
    lookedAt = performance.now()
  }
  const queries: Queries = {
    query: async (sql, values = []) => run(sql, values),
    script: async (sql) => database.exec(sql),
  }
  // One connection, so no query of another request may run within a transaction that awaits something.
  const enqueue = createSerialQueue()
  const transaction: Store['transaction'] = (work) =>
    enqueue(async () => {
      refuseOther(0)
      return await runTransaction(database, queries, work)
    })

  return {
    query: groupStatements(enqueue, (group) => {
      refuseOther(LOOK_EVERY_MS)
      return whenFree(database, () => runGroup(database, run, group))
    }),
    script: (sql) => enqueue(() => whenFree(database, () => queries.script(sql))),
    transaction,
    longTransaction: transaction,
    // No network to wait for.
    abandon: () => undefined,
    close: () => enqueue(async () => database.close()),
  }
}

/**
 * Reads the SQLite file at `path` without changing it.
 * @throws if it is not one, or visibly damaged.
 */
export function readSqlite(path: string): void {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    database.exec('PRAGMA schema_version')
  } finally {
    database.close()
  }
}

/** A statement and its result. */
interface Statement {
  readonly sql: string
  readonly values: readonly Value[]
}
type Outcome = { readonly rows: readonly Row[] } | { readonly fault: unknown }

type RunGroup = (group: readonly Statement[]) => Promise<readonly Outcome[]>

/** Groups the statements of one turn of the event loop, and the ones that arrive while others hold the queue. */
function groupStatements(enqueue: SerialQueue, runGrouped: RunGroup): Store['query'] {
  let group: Statement[] = []
  let outcomes: Promise<readonly Outcome[]> | undefined
  const runNext = async () => {
    await endOfTurn()
    const gathered = group
    group = []
    outcomes = undefined
    return await runGrouped(gathered)
  }
  return async (sql, values = []) => {
    const place = group.push({ sql, values }) - 1
    outcomes ??= enqueue(runNext)
    const outcome = (await outcomes)[place]
    if (outcome !== undefined && 'rows' in outcome) return outcome.rows
    throw outcome?.fault
  }
}

/**
 * Runs statements as one transaction, each with its own result. A group that writes takes the write lock at once, since
 * a transaction that reads first cannot be upgraded safely.
 */
function runGroup(database: DatabaseSync, run: RunStatement, group: readonly Statement[]): Outcome[] {
  const isReading = group.every(({ sql }) => /^\s*SELECT\b/i.test(sql))
  run(isReading ? 'BEGIN' : 'BEGIN IMMEDIATE', [])
  try {
    const outcomes = group.map(({ sql, values }): Outcome => {
      try {
        return { rows: run(sql, values) }
      } catch (fault) {
        // Some errors, such as a full disk, also roll back the earlier statements.
        if (!database.isTransaction || isOfKind(fault, SQLITE_BUSY, SQLITE_FULL)) throw fault
        return { fault }
      }
    })
    run('COMMIT', [])
    return outcomes
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** The identity of the file at `path`; undefined if there is none, or for an in-memory store. */
function fileAt(path: string): string | undefined {
  const file = statSync(path, { throwIfNoEntry: false })
  return file && `${file.dev} ${file.ino}`
}

async function openDatabase(path: string): Promise<DatabaseSync> {
  // whenFree waits for locks without blocking the event loop. SQLite's own wait fails at once if two processes switch a
  // new file to WAL at the same time.
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    await whenFree(database, () => database.exec(`PRAGMA journal_mode = WAL; ${SYNC_AT_CHECKPOINTS}`))
    return database
  } catch (error) {
    database.close()
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
  /** Whether it returns rows; reading them from a write would slow it down. */
  readonly givesRows: boolean
  /** The value index at each placeholder: 1 for `$1`. */
  readonly places: readonly number[]
  /** The number of different values. */
  readonly count: number
}

// Bound by position: SQLite's search for parameter names is slow in statements with hundreds of them.
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

async function runTransaction<Result>(
  database: DatabaseSync,
  queries: Queries,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  database.exec(SYNC_EACH)
  try {
    // IMMEDIATE takes the write lock at once: a transaction that reads first cannot be upgraded safely.
    await whenFree(database, () => queries.script('BEGIN IMMEDIATE'))
    const result = await work(queries)
    database.exec('COMMIT')
    restartWal(database)
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  } finally {
    database.exec(SYNC_AT_CHECKPOINTS)
  }
}

// Runs one statement once no other process is writing. A statement that met a lock or a full disk has changed nothing.
// On a full disk a WAL checkpoint makes space.
async function whenFree<Result>(
  database: DatabaseSync,
  statement: () => Result | Promise<Result>,
): Promise<Result> {
  const deadline = performance.now() + BUSY_TIMEOUT_MS
  let isAnew = false
  for (;;) {
    try {
      return await statement()
    } catch (error) {
      const mayHelp = isOfKind(error, SQLITE_BUSY) || (isOfKind(error, SQLITE_FULL) && !isAnew)
      if (!mayHelp || performance.now() >= deadline) throw error
      if (isOfKind(error, SQLITE_FULL) && restartWal(database)) isAnew = true
      else await sleep(BUSY_PAUSE_MS)
    }
  }
}

// Checkpoints the WAL, so that it is overwritten from its start. While the disk has space, that also grows the file
// enough to count requests on a full disk later. False while another process reads or checkpoints the WAL.
function restartWal(database: DatabaseSync): boolean {
  try {
    return database.prepare('PRAGMA wal_checkpoint(RESTART)').get()?.['busy'] === 0
  } catch {
    // The WAL stays valid.
    return true
  }
}

function isOfKind(error: unknown, ...kinds: readonly number[]): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false
  // The low byte is the kind of error; the rest is a detail, such as "busy: being recovered".
  return kinds.includes(error.errcode & 0xff)
}
