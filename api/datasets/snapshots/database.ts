/**
 * One DuckDB instance for all snapshots, with one limit of memory. Each snapshot is attached read-only under its
 * identifier. Statements run in pools of a few connections; further ones wait, limited in number and time, so that heavy
 * ones cannot block everything else.
 */
import {
  DuckDBInstance,
  VARCHAR,
  type DuckDBConnection,
  type DuckDBPreparedStatement,
} from '@duckdb/node-api'
import { ApiError } from '../../http/errors.ts'

type SqlValue = string | number | null
type SqlValues = Readonly<Record<string, SqlValue>>
type SqlRow = Readonly<Record<string, unknown>>

/**
 * Runs one statement with `values` bound by name to `$name`. An aborted `signal` drops a waiting statement, and
 * interrupts a running one; the result rejects with its reason.
 * @throws {ApiError} 503 if too many statements wait, this one took too long, or it needs too much memory.
 */
export type Query = (sql: string, values: SqlValues, signal?: AbortSignal) => Promise<readonly SqlRow[]>

interface PoolLimits {
  readonly connections: number
  /** Statements that may wait for a connection. */
  readonly waiting: number
  /** Milliseconds for a statement, including its wait. */
  readonly queryMs: number
}

/**
 * The pools: visitors of the page, who need no key, do not block clients with a key, and neither of them delays the
 * preparation of a new snapshot.
 */
const POOLS = {
  clients: { connections: 4, waiting: 200, queryMs: 20_000 },
  pages: { connections: 2, waiting: 60, queryMs: 20_000 },
  preparation: { connections: 1, waiting: 200, queryMs: 60_000 },
} as const satisfies Readonly<Record<string, PoolLimits>>
export type PoolName = keyof typeof POOLS

export interface Database {
  /** @throws if the file cannot be opened. */
  attach(name: string, path: string): Promise<void>
  /** Interrupts the statements on an attached file, and closes it. */
  detach(name: string): Promise<void>
  /** A function that runs statements on an attached file. */
  queryOf(name: string, pool: PoolName): Query
  /** Interrupts all statements, and closes all files. */
  close(): Promise<void>
}

interface DatabaseOptions {
  /** DuckDB's limit of memory, such as `1GB`. */
  readonly memory: string
  /** The folder that the attached files are in. */
  readonly folder: string
}

const RETRY_AFTER_SECONDS = 2
const INTERRUPT_AGAIN_MS = 50

/** The database that a connection uses while its last one is detached. */
const NONE = 'memory'

/** A statement between its request and its result. */
interface Running {
  readonly name: string
  readonly ending: AbortController
  readonly result: Promise<unknown>
}

/** An instance in memory that can open files in `folder` alone. */
async function createInstance({ memory, folder }: DatabaseOptions) {
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: memory,
    // Nothing is spilled to disk.
    temp_directory: '',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  })
  const connection = await instance.connect()
  await connection.run(`SET allowed_directories = [${quote(`${folder}/`, "'")}]`)
  await connection.run('SET enable_external_access = false')
  await connection.run("SET GLOBAL TimeZone = 'UTC'")
  return { instance, connection }
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { instance, connection } = await createInstance(options)
  const pools = {
    clients: await openPool(instance, POOLS.clients),
    pages: await openPool(instance, POOLS.pages),
    preparation: await openPool(instance, POOLS.preparation),
  } satisfies Readonly<Record<PoolName, Pool>>
  const running = new Set<Running>()

  async function end(those: (each: Running) => boolean): Promise<void> {
    const ended = [...running].filter(those)
    for (const { ending } of ended) ending.abort(closedFault())
    // A statement on a closed connection never ends, and keeps the process alive.
    await Promise.allSettled(ended.map(({ result }) => result))
  }

  return {
    attach: async (name, path) => {
      await connection.run(`ATTACH ${quote(path, "'")} AS ${quote(name, '"')} (READ_ONLY)`)
    },
    async detach(name) {
      await end((each) => each.name === name)
      for (const pool of Object.values(pools)) await pool.leave(name)
      await connection.run(`DETACH ${quote(name, '"')}`)
    },
    queryOf: (name, pool) => async (sql, values, signal) => {
      using ending = endingOf(POOLS[pool].queryMs, signal)
      const { controller } = ending
      const result = pools[pool].run({ name, sql, values }, controller.signal)
      const statement = { name, ending: controller, result }
      running.add(statement)
      try {
        return await result
      } catch (error) {
        controller.signal.throwIfAborted()
        throw asBusy(error)
      } finally {
        running.delete(statement)
      }
    },
    async close() {
      await end(() => true)
      for (const pool of Object.values(pools)) pool.close()
      connection.closeSync()
      instance.closeSync()
    },
  }
}

/** Ends a statement after its time, or with `signal`. */
function endingOf(ms: number, signal: AbortSignal | undefined) {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(busy('The query took too long')), ms)
  const cancel = () => controller.abort(signal?.reason)
  if (signal?.aborted === true) cancel()
  signal?.addEventListener('abort', cancel)
  return {
    controller,
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
    },
  }
}

interface Statement {
  readonly name: string
  readonly sql: string
  readonly values: SqlValues
}

/** A connection with its database and the statements prepared on it. */
interface Connection {
  readonly connection: DuckDBConnection
  readonly prepared: Map<string, DuckDBPreparedStatement>
  name: string
}

interface Pool {
  run(statement: Statement, ending: AbortSignal): Promise<readonly SqlRow[]>
  /** Makes idle connections to this database leave it. */
  leave(name: string): Promise<void>
  close(): void
}

async function openPool(instance: DuckDBInstance, { connections, waiting }: PoolLimits): Promise<Pool> {
  const idle: Connection[] = []
  const queue = new Set<PromiseWithResolvers<Connection>>()
  for (let opened = 0; opened < connections; opened += 1) {
    idle.push({ connection: await instance.connect(), prepared: new Map(), name: NONE })
  }

  async function take(name: string, ending: AbortSignal): Promise<Connection> {
    ending.throwIfAborted()
    const [free] = idle.splice(
      idle.findLastIndex((each) => each.name === name),
      1,
    )
    if (free !== undefined) return free
    if (queue.size >= waiting) throw busy('Too many queries are waiting')
    const waiter = Promise.withResolvers<Connection>()
    queue.add(waiter)
    ending.addEventListener('abort', () => queue.delete(waiter) && waiter.reject(ending.reason))
    return await waiter.promise
  }

  function give(connection: Connection): void {
    const [next] = queue
    if (next === undefined) return void idle.push(connection)
    queue.delete(next)
    next.resolve(connection)
  }

  return {
    async run(statement, ending) {
      const taken = await take(statement.name, ending)
      try {
        return await runUntil(ending, taken, statement)
      } finally {
        give(taken)
      }
    },
    async leave(name) {
      const leaving = idle.filter((each) => each.name === name)
      for (const each of leaving) idle.splice(idle.indexOf(each), 1)
      for (const each of leaving) {
        await use(each, NONE)
        give(each)
      }
    },
    close() {
      for (const { connection, prepared } of idle) {
        for (const statement of prepared.values()) statement.destroySync()
        connection.closeSync()
      }
    },
  }
}

/** Runs a statement until `ending`, which interrupts it. */
async function runUntil(
  ending: AbortSignal,
  taken: Connection,
  statement: Statement,
): Promise<readonly SqlRow[]> {
  let again: NodeJS.Timeout | undefined
  const interrupt = () => {
    taken.connection.interrupt()
    // DuckDB loses an interrupt just before a statement begins.
    again = setTimeout(interrupt, INTERRUPT_AGAIN_MS)
  }
  ending.addEventListener('abort', interrupt)
  try {
    ending.throwIfAborted()
    if (taken.name !== statement.name) await use(taken, statement.name)
    return await run(taken, statement)
  } finally {
    clearTimeout(again)
    ending.removeEventListener('abort', interrupt)
  }
}

/** Names without a database are looked up in this one from here on, also by macros. */
async function use(taken: Connection, name: string): Promise<void> {
  for (const statement of taken.prepared.values()) statement.destroySync()
  taken.prepared.clear()
  taken.name = NONE
  await taken.connection.run(`USE ${quote(name, '"')}`)
  taken.name = name
}

async function run({ connection, prepared }: Connection, { sql, values }: Statement) {
  const statement = prepared.get(sql) ?? (await connection.prepare(sql))
  prepared.set(sql, statement)
  // A bare null has no type, but a macro's argument needs one.
  const nulls = Object.keys(values).filter((name) => values[name] === null)
  statement.bind({ ...values }, Object.fromEntries(nulls.map((name) => [name, VARCHAR])))
  const reader = await statement.runAndReadAll()
  return reader.getRowObjectsJS()
}

function quote(text: string, mark: '"' | "'"): string {
  return `${mark}${text.replaceAll(mark, mark + mark)}${mark}`
}

function closedFault(): Error {
  return new Error('The snapshot is closed: the query outlived its request')
}

function busy(reason: string): ApiError {
  return new ApiError(503, `${reason}; try again in ${RETRY_AFTER_SECONDS} seconds`, {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  })
}

function asBusy(error: unknown): unknown {
  const isMemory = error instanceof Error && error.message.startsWith('Out of Memory Error')
  return isMemory ? busy('The queries need more memory than API_MEMORY allows') : error
}
