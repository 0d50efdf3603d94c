/** Operators' decisions about apps: each is a new file of registry rows, so nothing is ever overwritten. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { randomBytes } from 'node:crypto'
import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { RAW_FOLDER } from '../contract/files.ts'
import { listValue } from '../duckdb/sql-values.ts'
import { countSchema, execute, readRows } from '../duckdb/statements.ts'
import { DataError, LockedError, messageOf } from '../errors.ts'
import { UsageError } from '../program/program.ts'
import { writeInOneStep } from '../snapshot/durable-file.ts'
import { decodeRegistry, findFaults, withRegistry } from './registry.ts'
import type { RegistryDependencies } from './show-registry.ts'

const winnerRow = z.object({
  app_id: z.string(),
  app_name: z.string().nullable(),
  visibility: z.string().nullable(),
  subcategories: z.array(z.string()),
  alias_of: z.string().nullable(),
  /** Null if the row's time cannot be read, or does not count. */
  updated_ms: countSchema.nullable(),
})
/** The state of an app, as far as a decision can change it. */
export type AppState = Omit<z.infer<typeof winnerRow>, 'app_id' | 'updated_ms'>

export type Decision = {
  /** The command, stored with the rows. */
  readonly action: string
  readonly ids: readonly string[]
  readonly reason: string
  /** What changes in the state of an app. */
  readonly change: (app: AppState) => Partial<AppState>
}

/** A row of the registry that a decision adds. */
type DecisionRow = AppState & Record<'app_id' | 'updated_at' | 'action' | 'reason', string>

/** How long a decision waits for another one. */
const LOCK_WAIT_MS = 10_000

/** SQLite's code for a held lock (SQLITE_BUSY). */
const BUSY = 5

/**
 * Appends the decision to the registry; skips apps that it would not change.
 * @throws UsageError if an app is not registered, or if the decision would add a violation to the registry; LockedError if
 * another decision takes longer than `waitMs`.
 */
export async function decide(
  dependencies: RegistryDependencies,
  decision: Decision,
  waitMs = LOCK_WAIT_MS,
): Promise<void> {
  const folder = join(dependencies.config.dataDir, RAW_FOLDER, 'apps')
  using locks = new DisposableStack()
  // Without the folder there is no registry, and no place for the lock's file.
  if (existsSync(folder)) locks.use(lockDecisions(join(folder, '.decisions.lock'), waitMs))
  const rows = await withRegistry(dependencies.config, async (connection) => {
    const proposed = await propose(connection, dependencies, decision)
    const faults = new Set(await findFaults(connection))
    await stage(connection, proposed)
    const added = (await findFaults(connection)).filter((fault) => !faults.has(fault))
    if (added.length > 0) throw new UsageError(`This would break the registry: ${added.join('; ')}`)
    return proposed
  })
  if (rows.length === 0) return
  const time = dependencies.now().toISOString().replaceAll(/[-:.]/g, '')
  const path = join(folder, `decision-${time}-${randomBytes(4).toString('hex')}.ndjson`)
  writeInOneStep(path, rows.map((row) => `${lineOf(row)}\n`).join(''))
  dependencies.note(`Written to ${path}. It takes effect with the next nightly run`)
}

/** Serialises decisions over processes: each starts from the result of the one before. The system frees it after a kill. */
function lockDecisions(path: string, waitMs: number): Disposable {
  try {
    // For a missing permission SQLite only reports that it cannot open the file.
    accessSync(dirname(path), constants.W_OK)
    const lock = new DatabaseSync(path, { timeout: waitMs })
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === BUSY) {
      throw new LockedError(`Another decision about the apps is under way, and holds ${path}; try again`)
    }
    throw new DataError(`${path} cannot be locked: ${messageOf(error)}`, { cause: error })
  }
}

async function propose(
  connection: DuckDBConnection,
  dependencies: RegistryDependencies,
  { ids, change, action, reason }: Decision,
): Promise<DecisionRow[]> {
  const winners = await readRows(connection, 'commands.sql#winners', winnerRow, { ids: listValue(ids) })
  const known = new Set(winners.map(({ app_id }) => app_id))
  const unknown = ids.filter((id) => !known.has(id))
  if (unknown.length > 0) {
    throw new UsageError(`No app has the id ${unknown.join(', ')}: list shows the ids`)
  }
  return winners.flatMap(({ app_id, updated_ms, ...before }) => {
    const state = { ...before, ...change(before) }
    if (JSON.stringify(state) === JSON.stringify(before)) {
      dependencies.note(`App ${app_id} is unchanged; nothing is written for it`)
      return []
    }
    if (state.alias_of !== null && state.visibility !== before.visibility) {
      dependencies.note(
        `App ${app_id} is an alias: its usage counts for app ${state.alias_of}, whose visibility decides`,
      )
    }
    return [{ app_id, ...state, updated_at: timeAfter(dependencies, app_id, updated_ms), action, reason }]
  })
}

/** The present, or just after the winning row if that is dated later: the newest row wins. */
function timeAfter(dependencies: RegistryDependencies, id: string, updatedMs: number | null): string {
  const now = dependencies.now().getTime()
  if (updatedMs === null || updatedMs < now) return new Date(now).toISOString()
  const after = new Date(updatedMs + 1).toISOString()
  dependencies.note(
    `The newest row of app ${id} is dated in the future; the decision is dated just after it, ${after}`,
  )
  return after
}

/** Stages a decision before its file exists. */
async function stage(connection: DuckDBConnection, rows: readonly DecisionRow[]): Promise<void> {
  for (const row of rows) {
    // For messages, and behind every file at equal times.
    const file = `decision about app ${row.app_id}`
    const subcategories = JSON.stringify(row.subcategories)
    await execute(connection, 'commands.sql#propose', { file, row: 1, ...row, subcategories })
  }
  await decodeRegistry(connection)
}

/** A line of the decision's file. Ids are numbers in it, which may pass 2^53. */
function lineOf({ app_id, alias_of, ...row }: DecisionRow): string {
  const ids = { app_id: JSON.rawJSON(app_id), alias_of: alias_of === null ? null : JSON.rawJSON(alias_of) }
  return JSON.stringify({ ...ids, ...row })
}
