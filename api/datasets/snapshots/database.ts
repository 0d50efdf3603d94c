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
import { busy } from '../../http/errors.ts'

type SqlValues = Readonly<Record<string, string | number | null>>
type SqlRows = readonly Readonly<Record<string, unknown>>[]

/**
 * Runs one statement on a snapshot with `values` bound by name to `$name`. A caller awaits its statements, also failed
 * ones: its snapshot stays attached meanwhile.
 * @throws ApiError 503 if too many statements wait, this one took too long, or it needs too much memory.
 */
export type Query = (sql: string, values: SqlValues) => Promise<SqlRows>

/**
 * The pools: how many statements run at once and may wait, and milliseconds for each, including its wait. Visitors of the
 * page, who need no key, do not block clients with a key, and neither of them delays the preparation of a new snapshot.
 */
const POOLS = {
  clients: { running: 4, waiting: 200, queryMs: 20_000 },
  pages: { running: 2, waiting: 60, queryMs: 20_000 },
  preparation: { running: 1, waiting: 200, queryMs: 60_000 },
} as const
export type PoolName = keyof typeof POOLS

/**
 * @param folder with the files that may be attached: no other can be opened.
 * @param memory DuckDB's limit, such as `1GB`.
 */
export async function openDatabase(folder: string, memory: string) {
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: memory,
    // Nothing is spilled to disk.
    temp_directory: '',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  })
  const own = await instance.connect()
  await own.run(`SET allowed_directories = [${quote(`${folder}/`, "'")}]`)
  await own.run('SET enable_external_access = false')
  await own.run("SET GLOBAL TimeZone = 'UTC'")
  const pools = {
    clients: createPool(POOLS.clients),
    pages: createPool(POOLS.pages),
    preparation: createPool(POOLS.preparation),
  }
  const open = new Set<() => Promise<void>>()

  /**
   * Attaches a file under a name.
   * @throws if it cannot be opened.
   */
  async function attach(name: string, path: string) {
    await own.run(`ATTACH ${quote(path, "'")} AS ${quote(name, '"')} (READ_ONLY)`)
    const idle: Connection[] = []
    const run = async (ending: AbortSignal, sql: string, values: SqlValues) => {
      const connection = idle.pop() ?? (await connect(instance, name))
      try {
        return await runUntil(ending, connection, sql, values)
      } finally {
        idle.push(connection)
      }
    }
    /** Closes the file, unless it is closed; no statement may be running on it. */
    const detach = async () => {
      if (!open.delete(detach)) return
      for (const connection of idle) disconnect(connection)
      await own.run(`DETACH ${quote(name, '"')}`)
    }
    /** An aborted `signal` drops a waiting statement, and interrupts a running one; the result rejects with its reason. */
    const queryOf = (pool: PoolName, signal?: AbortSignal): Query => {
      return (sql, values) => pools[pool].run((ending) => run(ending, sql, values), signal)
    }
    open.add(detach)
    return { queryOf, detach }
  }

  /** Interrupts all statements, and closes all files. */
  async function close(): Promise<void> {
    // A statement on a closed connection never ends, and keeps the process alive.
    for (const pool of Object.values(pools)) await pool.close()
    for (const detach of open) await detach()
    own.closeSync()
    instance.closeSync()
  }
  return { attach, close }
}

export type Database = Awaited<ReturnType<typeof openDatabase>>

/** Runs a few statements at once; further ones wait, limited in number and time. */
function createPool({ running, waiting, queryMs }: (typeof POOLS)[PoolName]) {
  const queue = new Set<() => void>()
  const ongoing = new Map<AbortController, Promise<SqlRows>>()
  let free: number = running

  async function enter(ending: AbortSignal): Promise<void> {
    ending.throwIfAborted()
    if (free > 0) return void (free -= 1)
    if (queue.size >= waiting) throw busy('Too many queries are waiting')
    await new Promise<void>((resolve, reject) => {
      queue.add(resolve)
      ending.addEventListener('abort', () => queue.delete(resolve) && reject(ending.reason))
    })
  }

  function leave(): void {
    const [next] = queue
    if (next === undefined) return void (free += 1)
    queue.delete(next)
    next()
  }

  return {
    /** Runs a statement once there is room for it; its signal says when it is to end before. */
    async run(statement: (ending: AbortSignal) => Promise<SqlRows>, signal?: AbortSignal): Promise<SqlRows> {
      const controller = new AbortController()
      const timer = setTimeout(() => controller.abort(busy('The query took too long')), queryMs)
      const ending = signal === undefined ? controller.signal : AbortSignal.any([controller.signal, signal])
      const result = enter(ending).then(() => statement(ending).finally(leave))
      ongoing.set(controller, result)
      try {
        return await result
      } catch (error) {
        ending.throwIfAborted()
        throw asBusy(error)
      } finally {
        clearTimeout(timer)
        ongoing.delete(controller)
      }
    },
    /** Ends all statements. */
    async close(): Promise<void> {
      for (const controller of ongoing.keys()) controller.abort(new Error('The service is stopping'))
      await Promise.allSettled(ongoing.values())
    },
  }
}

/** A connection to one attached file, and the statements prepared on it. */
type Connection = {
  readonly connection: DuckDBConnection
  readonly prepared: Map<string, DuckDBPreparedStatement>
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

const INTERRUPT_EVERY_MS = 50

/** Runs a statement until `ending`, which interrupts it. */
async function runUntil(
  ending: AbortSignal,
  { connection, prepared }: Connection,
  sql: string,
  values: SqlValues,
): Promise<SqlRows> {
  // DuckDB loses an interrupt just before a statement begins, so it is repeated.
  const interrupts = setInterval(() => ending.aborted && connection.interrupt(), INTERRUPT_EVERY_MS)
  try {
    ending.throwIfAborted()
    const statement = prepared.get(sql) ?? (await connection.prepare(sql))
    prepared.set(sql, statement)
    // A bare null has no type, but a macro's argument needs one.
    const nulls = Object.keys(values).filter((name) => values[name] === null)
    statement.bind({ ...values }, Object.fromEntries(nulls.map((name) => [name, VARCHAR])))
    return (await statement.runAndReadAll()).getRowObjectsJS()
  } finally {
    clearInterval(interrupts)
  }
}

function quote(text: string, mark: '"' | "'"): string {
  return `${mark}${text.replaceAll(mark, mark + mark)}${mark}`
}

function asBusy(error: unknown): unknown {
  const isMemory = error instanceof Error && error.message.startsWith('Out of Memory Error')
  return isMemory ? busy('The queries need more memory than API_MEMORY allows') : error
}
