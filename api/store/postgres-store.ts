/** The store in a PostgreSQL database, which several API processes may share. */
import { once } from 'node:events'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool, types, type PoolClient, type PoolConfig } from 'pg'
import { createSerialQueue } from '../process/serial-queue.ts'
import type { Queries, Store } from './store.ts'

// Nothing may hang for ever, whatever the server, the network or another process with a lock does. Parameters in the
// address, such as ?statement_timeout=…, take precedence.
const LIMITS = {
  max: 10,
  idleTimeoutMillis: 30_000,
  connectionTimeoutMillis: 10_000,
  lock_timeout: 10_000,
  statement_timeout: 30_000,
  // The server's own limit is shorter; this one is for a server that does not answer.
  query_timeout: 40_000,
  idle_in_transaction_session_timeout: 60_000,
} as const satisfies PoolConfig

// Time for a server to close; a silent one never does, and its sockets would keep the process alive.
const HANG_UP_MS = 1000

// The advisory lock of this service: an arbitrary number.
const TRANSACTION_LOCK = 7_305_201
const BEGIN = 'BEGIN'
const BEGIN_ALONE = `BEGIN; SELECT pg_advisory_xact_lock(${TRANSACTION_LOCK})`

// As in SQLite, counts and sums are numbers.
const PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [types.builtins.INT8, exactNumber],
  [types.builtins.NUMERIC, exactNumber],
  [types.builtins.BOOL, (text) => (text === 't' ? 1 : 0)],
])

/** Connects to the database at `url`, `postgres://…`, at the first query; replaces lost connections. */
export function openPostgres(url: string): Store {
  const sockets = createSockets()
  const pool = new Pool({
    ...LIMITS,
    stream: () => sockets.make(),
    connectionString: url,
    application_name: 'app-rankings',
    keepAlive: true,
    types: { getTypeParser: parserOf },
  })
  // An idle connection that breaks has left the pool; the next query opens another, or fails.
  pool.on('error', ignore)
  const queries = postgresQueries(pool)
  // Transactions exclude one another anyway, so waiting ones need no connection.
  const enqueue = createSerialQueue()

  return {
    ...queries,
    transaction: (work) => enqueue(() => runTransaction(pool, BEGIN_ALONE, work)),
    longTransaction: (work) => runTransaction(pool, BEGIN, work),
    abandon: () => sockets.destroy(),
    async close() {
      await enqueue(() => pool.end())
      await Promise.race([sockets.closed(), sleep(HANG_UP_MS, undefined, { ref: false })])
      sockets.destroy()
    },
  }
}

// The sockets of a pool, which drops closing ones from its own list.
function createSockets() {
  const open = new Set<Socket>()
  let destroyed = false

  return {
    make(): Socket {
      const socket = new Socket()
      open.add(socket)
      socket.once('close', () => open.delete(socket))
      // Later, since the pool must first add its listeners.
      if (destroyed) setImmediate(() => destroy(socket))
      return socket
    },
    async closed(): Promise<void> {
      await Promise.all(Array.from(open, (socket) => once(socket, 'close').catch(ignore)))
    },
    destroy(): void {
      destroyed = true
      for (const socket of open) destroy(socket)
    },
  }
}

function destroy(socket: Socket): void {
  socket.destroy(new Error('The connection to the database was closed'))
}

function postgresQueries(connection: Pool | PoolClient): Queries {
  return {
    async query(sql, values = []) {
      const { rows } = await connection.query<Record<string, unknown>>(sql, [...values])
      return rows
    },
    async script(sql) {
      await connection.query(sql)
    },
  }
}

async function runTransaction<Result>(
  pool: Pool,
  begin: string,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  // A connection that breaks between the queries of `work` fails the next query, not the process.
  client.on('error', ignore)
  let broken = false
  try {
    // READ COMMITTED: each statement sees what the previous holder of the lock has written.
    await client.query(begin)
    const result = await work(postgresQueries(client))
    await commit(client)
    return result
  } catch (error) {
    broken = await client.query('ROLLBACK').then(
      () => false,
      () => true,
    )
    throw error
  } finally {
    client.off('error', ignore)
    client.release(broken)
  }
}

function ignore(): void {}

// After a failed statement PostgreSQL answers a COMMIT with a silent ROLLBACK.
async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT')
  if (command !== 'COMMIT')
    throw new Error('The transaction was rolled back: one of its statements had failed')
}

function parserOf(oid: number): (text: string) => unknown {
  return PARSERS.get(oid) ?? types.getTypeParser(oid)
}

function exactNumber(text: string): number {
  const number = Number(text)
  if (Number.isInteger(number) && !Number.isSafeInteger(number)) {
    throw new RangeError(`The value ${text} is too large for a JavaScript number`)
  }
  return number
}
