/**
 * One DuckDB instance for all snapshots, with one limit of memory. Each snapshot is attached read-only under its
 * identifier. Statements run in pools of a few at once; further ones wait, limited in number and time, so that heavy ones
 * cannot block everything else.
 */
import {
  DuckDBInstance,
  VARCHAR,
  type DuckDBConnection,
  type DuckDBPreparedStatement,
} from '@duckdb/node-api'
import { ApiError } from '../../http/errors.ts'

type SqlValues = Readonly<Record<string, string | number | null>>
type SqlRows = readonly Readonly<Record<string, unknown>>[]

/**
 * Runs one statement on a snapshot with `values` bound by name to `$name`. A caller awaits its statements, also failed
 * ones: its snapshot stays attached meanwhile.
 * @throws {ApiError} 503 if too many statements wait, this one took too long, or it needs too much memory.
 */
export type Query = (sql: string, values: SqlValues) => Promise<SqlRows>

interface PoolLimits {
  /** Statements that run at once. */
  readonly running: number
  /** Statements that may wait. */
  readonly waiting: number
  /** Milliseconds for a statement, including its wait. */
  readonly queryMs: number
}

/**
 * The pools: visitors of the page, who need no key, do not block clients with a key, and neither of them delays the
 * preparation of a new snapshot.
 */
const POOLS = {
  clients: { running: 4, waiting: 200, queryMs: 20_000 },
  pages: { running: 2, waiting: 60, queryMs: 20_000 },
  preparation: { running: 1, waiting: 200, queryMs: 60_000 },
} as const satisfies Readonly<Record<string, PoolLimits>>
export type PoolName = keyof typeof POOLS

export interface Database {
  /** @throws if the file cannot be opened. */
  attach(name: string, path: string): Promise<void>
  /** Closes an attached file; no statement may be running on it. */
  detach(name: string): Promise<void>
  /**
   * A function that runs statements on an attached file. An aborted `signal` drops a waiting statement, and interrupts a
   * running one; the result rejects with its reason.
   */
  queryOf(name: string, pool: PoolName, signal?: AbortSignal): Query
  /** Interrupts all statements, and closes all files. */
  close(): Promise<void>
}

const RETRY_AFTER_SECONDS = 2
const INTERRUPT_AGAIN_MS = 50

/** A connection to one attached file, and the statements prepared on it. */
interface Connection {
  readonly connection: DuckDBConnection
  readonly prepared: Map<string, DuckDBPreparedStatement>
}

interface DatabaseOptions {
  /** DuckDB's limit of memory, such as `1GB`. */
  readonly memory: string
  /** The folder that the attached files are in. */
  readonly folder: string
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
  const { instance, connection: own } = await createInstance(options)
  const pools = {
    clients: createPool(POOLS.clients),
    pages: createPool(POOLS.pages),
    preparation: createPool(POOLS.preparation),
  }
  /** Idle connections by attached file. */
  const idle = new Map<string, Connection[]>()
  const running = new Map<AbortController, Promise<SqlRows>>()

  async function run(name: string, ending: AbortSignal, sql: string, values: SqlValues): Promise<SqlRows> {
    const connection = idle.get(name)?.pop() ?? (await connect(instance, name))
    try {
      return await runUntil(ending, connection, sql, values)
    } finally {
      idle.get(name)?.push(connection)
    }
  }

  return {
    async attach(name, path) {
      await own.run(`ATTACH ${quote(path, "'")} AS ${quote(name, '"')} (READ_ONLY)`)
      idle.set(name, [])
    },
    async detach(name) {
      for (const connection of idle.get(name) ?? []) disconnect(connection)
      idle.delete(name)
      await own.run(`DETACH ${quote(name, '"')}`)
    },
    queryOf: (name, pool, signal) => async (sql, values) => {
      using ending = endingOf(POOLS[pool].queryMs, signal)
      const { controller } = ending
      const result = pools[pool](controller.signal, () => run(name, controller.signal, sql, values))
      running.set(controller, result)
      try {
        return await result
      } catch (error) {
        controller.signal.throwIfAborted()
        throw asBusy(error)
      } finally {
        running.delete(controller)
      }
    },
    async close() {
      for (const controller of running.keys()) controller.abort(new Error('The service is stopping'))
      // A statement on a closed connection never ends, and keeps the process alive.
      await Promise.allSettled(running.values())
      for (const connection of [...idle.values()].flat()) disconnect(connection)
      own.closeSync()
      instance.closeSync()
    },
  }
}

/** Names without a database are looked up in this one, also by macros. */
async function connect(instance: DuckDBInstance, name: string): Promise<Connection> {
  const connection = await instance.connect()
  await connection.run(`USE ${quote(name, '"')}`)
  return { connection, prepared: new Map() }
}

function disconnect({ connection, prepared }: Connection): void {
  for (const statement of prepared.values()) statement.destroySync()
  connection.closeSync()
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

/** Runs a statement once there is room for it, unless `ending` comes before. */
type Pool = (ending: AbortSignal, run: () => Promise<SqlRows>) => Promise<SqlRows>

function createPool({ running, waiting }: PoolLimits): Pool {
  const queue = new Set<PromiseWithResolvers<void>>()
  let free: number = running

  async function enter(ending: AbortSignal): Promise<void> {
    ending.throwIfAborted()
    if (free > 0) return void (free -= 1)
    if (queue.size >= waiting) throw busy('Too many queries are waiting')
    const waiter = Promise.withResolvers<void>()
    queue.add(waiter)
    ending.addEventListener('abort', () => queue.delete(waiter) && waiter.reject(ending.reason))
    await waiter.promise
  }

  function leave(): void {
    const [next] = queue
    if (next === undefined) return void (free += 1)
    queue.delete(next)
    next.resolve()
  }

  return async (ending, run) => {
    await enter(ending)
    try {
      return await run()
    } finally {
      leave()
    }
  }
}

/** Runs a statement until `ending`, which interrupts it. */
async function runUntil(
  ending: AbortSignal,
  { connection, prepared }: Connection,
  sql: string,
  values: SqlValues,
): Promise<SqlRows> {
  let again: NodeJS.Timeout | undefined
  const interrupt = () => {
    connection.interrupt()
    // DuckDB loses an interrupt just before a statement begins.
    again = setTimeout(interrupt, INTERRUPT_AGAIN_MS)
  }
  ending.addEventListener('abort', interrupt)
  try {
    ending.throwIfAborted()
    const statement = prepared.get(sql) ?? (await connection.prepare(sql))
    prepared.set(sql, statement)
    // A bare null has no type, but a macro's argument needs one.
    const nulls = Object.keys(values).filter((name) => values[name] === null)
    statement.bind({ ...values }, Object.fromEntries(nulls.map((name) => [name, VARCHAR])))
    const reader = await statement.runAndReadAll()
    return reader.getRowObjectsJS()
  } finally {
    clearTimeout(again)
    ending.removeEventListener('abort', interrupt)
  }
}

function quote(text: string, mark: '"' | "'"): string {
  return `${mark}${text.replaceAll(mark, mark + mark)}${mark}`
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
