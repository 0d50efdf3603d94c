/** The store in a PostgreSQL database, which several API processes may share. */
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool, types, type PoolClient, type PoolConfig } from 'pg'
import { createSerialQueue } from '../process/serial-queue.ts'
import { REQUEST_WAIT_MS, type Queries, type Store } from './store.ts'

// Nothing may hang for ever, whatever the server, the network or another process with a lock does. Parameters in the
// address, such as ?statement_timeout=…, take precedence.
const LIMITS = {
  max: 10,
  idleTimeoutMillis: 30_000,
  connectionTimeoutMillis: 10_000,
  // A count that waits for a lock must not be executed after its request got a 503.
  lock_timeout: REQUEST_WAIT_MS - 200,
  statement_timeout: 30_000,
  // The server's own limit is shorter; this one is for a server that does not answer.
  query_timeout: 40_000,
  idle_in_transaction_session_timeout: 60_000,
} as const satisfies PoolConfig

// Time for a server to answer and to close; a silent one never does, and its sockets would keep the process alive.
const CLOSE_MS = 1000

// The advisory lock of this service: an arbitrary number. READ COMMITTED: each statement sees what the previous holder of
// the lock has written.
const BEGIN_ALONE = "BEGIN; SET LOCAL lock_timeout = '10s'; SELECT pg_advisory_xact_lock(7305201)"

// As in SQLite, counts and sums are numbers.
const PARSERS = new Map<number, (text: string) => unknown>([
  [types.builtins.INT8, Number],
  [types.builtins.NUMERIC, Number],
  [types.builtins.BOOL, (text) => (text === 't' ? 1 : 0)],
])

/** Connects to the database at `url`, `postgres://…`, at the first query; replaces lost connections. */
export function openPostgres(url: string): Store {
  const sockets = new Set<Socket>()
  const pool = new Pool({
    ...LIMITS,
    stream: () => {
      const socket = new Socket()
      sockets.add(socket)
      return socket.once('close', () => sockets.delete(socket))
    },
    connectionString: url,
    application_name: 'app-rankings',
    keepAlive: true,
    types: { getTypeParser: (oid) => PARSERS.get(oid) ?? types.getTypeParser(oid) },
  })
  // An idle connection that breaks has left the pool; the next query opens another, or fails.
  pool.on('error', ignore)
  // Transactions exclude one another anyway, so waiting ones need no connection.
  const enqueue = createSerialQueue()

  async function close() {
    const ended = enqueue(() => pool.end()).catch(ignore)
    await Promise.race([ended, sleep(CLOSE_MS, undefined, { ref: false })])
    for (const socket of sockets) socket.destroySoon()
  }

  return {
    ...queriesOver(pool),
    transaction: (work) =>
      enqueue(async () => {
        const client = await pool.connect()
        // A connection that breaks between the queries of `work` fails the next query, not the process.
        client.on('error', ignore)
        let isWhole = false
        try {
          await client.query(BEGIN_ALONE)
          const result = await work(queriesOver(client))
          const { command } = await client.query('COMMIT')
          isWhole = command === 'COMMIT'
          // After a failed statement PostgreSQL answers a COMMIT with a silent ROLLBACK.
          if (!isWhole) throw new Error('The transaction was rolled back: one of its statements had failed')
          return result
        } finally {
          client.off('error', ignore)
          // The server rolls back what a closed connection began. A ROLLBACK would wait for a silent server once more.
          client.release(!isWhole)
        }
      }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function queriesOver(connection: Pool | PoolClient): Queries {
  return {
    async query(sql, values = []) {
      const { rows } = await connection.query<Record<string, unknown>>(sql, [...values])
      return rows
    },
  }
}

function ignore(): void {}
