/** The store in one SQLite file, through Node's built-in SQLite: one connection reads, the other writes. */
import { open } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSerialQueue } from '../process/serial-queue.ts'
import { REQUEST_WAIT_MS, type Queries, type Row, type Store, type Value } from './store.ts'

/** How long a transaction waits for another writing process. */
const TRANSACTION_WAIT_MS = 10_000
const PAUSE_MS = 2
const SQLITE_BUSY = 5
const SQLITE_FULL = 13

/** Opens or creates the SQLite file at `path`. */
export async function openSqlite(path: string): Promise<Store> {
  // A wait inside of SQLite would block the event loop, so `whenFree` waits.
  using opened = new DisposableStack()
  const writer = opened.use(new DatabaseSync(path, { timeout: 0 }))
  // Single statements, which count requests, are not synced: a power cut may lose the latest.
  await whenFree(writer, TRANSACTION_WAIT_MS, () =>
    writer.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL'),
  )
  const reader = opened.use(new DatabaseSync(path, { readOnly: true, timeout: 0 }))
  const [read, write] = [createRunStatement(reader), createRunStatement(writer)]
  const connections = opened.move()
  // A transaction awaits its work, and the connection must not run anything else meanwhile.
  const enqueue = createSerialQueue()
  const close = () => enqueue(async () => connections.dispose())
  const inTransaction: Queries = { query: async (sql, values = []) => write(sql, values) }
  return {
    async query(sql, values = []) {
      // In WAL mode a reader never waits for a writer, in this process or another.
      if (/^\s*SELECT\b/i.test(sql)) return read(sql, values)
      const deadline = performance.now() + REQUEST_WAIT_MS
      return await enqueue(() => whenFree(writer, deadline - performance.now(), () => write(sql, values)))
    },
    transaction: (work) =>
      enqueue(async () => {
        try {
          await whenFree(writer, TRANSACTION_WAIT_MS, () => writer.exec('BEGIN IMMEDIATE'))
          const result = await work(inTransaction)
          writer.exec('COMMIT')
          await syncLog(path)
          restartLog(writer)
          return result
        } catch (error) {
          if (writer.isTransaction) writer.exec('ROLLBACK')
          nameFile(path, error)
          throw error
        }
      }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Makes committed transactions, above all of keys, survive a power cut. */
async function syncLog(path: string): Promise<void> {
  await using log = await open(`${path}-wal`)
  await log.sync()
}

/** A function that prepares each statement once and runs it to its end. */
function createRunStatement(database: DatabaseSync) {
  const prepare = (sql: string) => ({
    // Bound by position: SQLite's search for parameter names is slow in statements with hundreds of them.
    statement: database.prepare(sql.replaceAll(/\$\d+/g, '?')),
    /** The value's number at each placeholder: 1 for `$1`. */
    places: Array.from(sql.matchAll(/\$(\d+)/g), ([, number]) => Number(number)),
  })
  const known = new Map<string, ReturnType<typeof prepare>>()
  return (sql: string, values: readonly Value[]): readonly Row[] => {
    const { statement, places } = known.getOrInsertComputed(sql, prepare)
    return statement.all(...places.map((place) => values[place - 1] ?? null))
  }
}

/**
 * Runs one statement once no other process is writing. A statement that met a lock or a full disk has changed nothing.
 * On a full disk a WAL checkpoint makes space.
 */
async function whenFree<Result>(database: DatabaseSync, waitMs: number, statement: () => Result) {
  const deadline = performance.now() + waitMs
  let madeSpace = false
  for (;;) {
    try {
      return statement()
    } catch (error) {
      const kind = kindOf(error)
      if (kind !== SQLITE_BUSY && (kind !== SQLITE_FULL || madeSpace)) throw error
      madeSpace = kind === SQLITE_FULL && restartLog(database)
      if (!madeSpace) await sleep(PAUSE_MS)
      // A request that was answered meanwhile must not be counted.
      if (performance.now() >= deadline) throw error
    }
  }
}

/**
 * Checkpoints the WAL, so that it is overwritten from its start. While the disk has space, that also grows the file enough
 * to count requests on a full disk later. False while another process reads or writes it.
 */
function restartLog(database: DatabaseSync): boolean {
  try {
    return database.prepare('PRAGMA wal_checkpoint(RESTART)').get()?.['busy'] === 0
  } catch {
    // The WAL stays valid.
    return true
  }
}

/** Adds the file and the remedy to an error of SQLite, which has neither. */
function nameFile(path: string, error: unknown): void {
  const kind = kindOf(error)
  if (kind === undefined || !(error instanceof Error)) return
  error.message += ` (${path})${kind === SQLITE_BUSY ? ': try again once no other process writes into it' : ''}`
}

/** The kind of an error of SQLite: the low byte of its code. The rest is a detail, such as "busy: being recovered". */
function kindOf(error: unknown): number | undefined {
  const isCoded = error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
  return isCoded ? Number(error.errcode) & 0xff : undefined
}
