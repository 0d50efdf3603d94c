/**
 * A few connections to one DuckDB, each with its prepared statements. Further queries wait, limited in number and time,
 * so that heavy ones cannot block everything else.
 */
import {
  VARCHAR,
  type DuckDBConnection,
  type DuckDBInstance,
  type DuckDBPreparedStatement,
} from '@duckdb/node-api'
import { ApiError } from '../../http/errors.ts'

type SqlValue = string | number | null
type SqlValues = Readonly<Record<string, SqlValue>>
type SqlRow = Readonly<Record<string, unknown>>

/**
 * Runs one statement with `values` bound by name to `$name`.
 * @throws {ApiError} 503 if too many queries wait, or this one waited and took too long.
 */
export type Query = (sql: string, values: SqlValues) => Promise<readonly SqlRow[]>

export interface Connections {
  readonly query: Query
  /** Interrupts running queries and closes the connections. */
  close(): Promise<void>
}

export interface ConnectionLimits {
  readonly connections: number
  /** Queries that may wait for a connection. */
  readonly waiting: number
  /** Milliseconds for a query, including its wait. */
  readonly queryMs: number
}

export const CONNECTION_LIMITS: ConnectionLimits = { connections: 4, waiting: 200, queryMs: 20_000 }

const RETRY_AFTER_SECONDS = 2
const INTERRUPT_AGAIN_MS = 50

interface Connection {
  readonly connection: DuckDBConnection
  readonly prepared: Map<string, DuckDBPreparedStatement>
}

/** Connections to `instance`, opened on demand. */
export function openConnections(
  instance: Pick<DuckDBInstance, 'connect'>,
  limits: ConnectionLimits = CONNECTION_LIMITS,
): Connections {
  const pool = createPool(limits, async () => ({ connection: await instance.connect(), prepared: new Map() }))
  const running = new Map<AbortController, Promise<unknown>>()
  let closed = false
  return {
    async query(sql, values) {
      if (closed) throw closedFault()
      const ending = new AbortController()
      const timer = setTimeout(() => ending.abort(busy('The query took too long')), limits.queryMs)
      const result = runUntil(ending.signal, pool, { sql, values })
      running.set(ending, result)
      try {
        return await result
      } catch (error) {
        ending.signal.throwIfAborted()
        throw error
      } finally {
        clearTimeout(timer)
        running.delete(ending)
      }
    },
    async close() {
      closed = true
      for (const ending of running.keys()) ending.abort(closedFault())
      // A query on a closed connection never ends, and keeps the process alive.
      await Promise.allSettled(running.values())
      for (const { connection, prepared } of pool.all) {
        for (const statement of prepared.values()) statement.destroySync()
        connection.closeSync()
      }
    },
  }
}

interface Statement {
  readonly sql: string
  readonly values: SqlValues
}

/** Runs a statement on its own connection until `ending`, which interrupts it. */
async function runUntil(ending: AbortSignal, pool: Pool, statement: Statement): Promise<readonly SqlRow[]> {
  const taken = await pool.take(ending)
  let again: NodeJS.Timeout | undefined
  const interrupt = () => {
    taken.connection.interrupt()
    // DuckDB loses an interrupt just before a statement begins.
    again = setTimeout(interrupt, INTERRUPT_AGAIN_MS)
  }
  ending.addEventListener('abort', interrupt)
  try {
    ending.throwIfAborted()
    return await run(taken, statement)
  } finally {
    clearTimeout(again)
    ending.removeEventListener('abort', interrupt)
    pool.give(taken)
  }
}

interface Pool {
  readonly all: readonly Connection[]
  /** A free connection, or the next one; a waiter gets the reason of `ending` when it is aborted. */
  take(ending: AbortSignal): Promise<Connection>
  give(connection: Connection): void
}

function createPool({ connections, waiting }: ConnectionLimits, open: () => Promise<Connection>): Pool {
  const all: Connection[] = []
  const idle: Connection[] = []
  const queue = new Set<PromiseWithResolvers<Connection>>()
  let places = connections

  async function openOne(): Promise<Connection> {
    places -= 1
    try {
      const connection = await open()
      all.push(connection)
      return connection
    } catch (error) {
      places += 1
      passPlaceOn()
      throw error
    }
  }

  function nextInQueue(): PromiseWithResolvers<Connection> | undefined {
    const [next] = queue
    if (next !== undefined) queue.delete(next)
    return next
  }

  // A connection that could not be opened is never returned, so its waiter retries.
  function passPlaceOn(): void {
    const next = nextInQueue()
    if (next !== undefined) openOne().then(next.resolve, next.reject)
  }

  return {
    all,
    async take(ending) {
      const free = idle.pop()
      if (free !== undefined) return free
      if (places > 0) return await openOne()
      if (queue.size >= waiting) throw busy('Too many queries are waiting')
      const waiter = Promise.withResolvers<Connection>()
      queue.add(waiter)
      ending.addEventListener('abort', () => queue.delete(waiter) && waiter.reject(ending.reason))
      return await waiter.promise
    },
    give(connection) {
      const next = nextInQueue()
      if (next === undefined) idle.push(connection)
      else next.resolve(connection)
    },
  }
}

async function run(
  { connection, prepared }: Connection,
  { sql, values }: Statement,
): Promise<readonly SqlRow[]> {
  const statement = prepared.get(sql) ?? (await connection.prepare(sql))
  prepared.set(sql, statement)
  // A bare null has no type, but a macro's argument needs one.
  const nulls = Object.keys(values).filter((name) => values[name] === null)
  statement.bind({ ...values }, Object.fromEntries(nulls.map((name) => [name, VARCHAR])))
  const reader = await statement.runAndReadAll()
  return reader.getRowObjectsJS()
}

function closedFault(): Error {
  return new Error('The connections are closed: the query outlived its request')
}

function busy(reason: string): ApiError {
  return new ApiError(503, `${reason}; try again in ${RETRY_AFTER_SECONDS} seconds`, {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  })
}
