/** Opens the service's store: the database of DATABASE_URL, or else the file `service.sqlite` in DATA_DIR. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { STORE_FILE, makeDataFolder } from '../../pipeline/contract/files.ts'
import { VERSION } from '../../pipeline/contract/version.ts'
import { UsageError } from '../../pipeline/program/program.ts'
import { messageOf, missingRights } from '../process/system-errors.ts'
import { openSqlite } from './sqlite-store.ts'
import type { Queries, Store } from './store.ts'

/** The settings that locate the store. */
export type StoreSettings = { readonly DATA_DIR: string; readonly DATABASE_URL?: string | undefined }

const NO_STORE = 'nothing is stored there: set DATA_DIR or DATABASE_URL as for the service'

/** Whether the text is a database address; the database may not exist. */
export function isDatabaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, pathname } = new URL(text)
  return /^postgres(?:ql)?:$/.test(protocol) && /^\/[^/%]+$/.test(pathname)
}

/** An address for messages, without user and password. */
function describeDatabase(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  const server = searchParams.get('host') ?? host
  return `database "${pathname.slice(1)}" at ${server === '' ? 'localhost' : server}`
}

/**
 * Opens the store, creates the file and its tables if they are missing, and applies pending migrations.
 * @param mustExist refuses to create them, since they would hide a mistyped DATA_DIR or DATABASE_URL.
 * @throws UsageError if the database is unusable or the folder is not writable.
 */
export async function openStore(settings: StoreSettings, { mustExist = false } = {}): Promise<Store> {
  const { DATA_DIR, DATABASE_URL } = settings
  let store: Store | undefined
  try {
    if (DATABASE_URL === undefined) {
      if (mustExist && !existsSync(join(DATA_DIR, STORE_FILE))) throw new Error(NO_STORE)
      makeDataFolder(DATA_DIR)
    }
    store = await connect(settings)
    await updateSchema(store, mustExist)
    return store
  } catch (error) {
    await store?.close()
    // For a missing permission SQLite only reports that it cannot open the file.
    const [missing = unusable(settings, messageOf(error))] = fileFaults(settings)
    throw new UsageError(missing, { cause: error })
  }
}

/** Why the store cannot be opened, a sentence each; empty if it can. Changes nothing. */
export async function storeFaults(settings: StoreSettings): Promise<string[]> {
  if (settings.DATABASE_URL === undefined) return fileFaults(settings)
  await using store = await connect(settings)
  return await store.query('SELECT 1 AS one').then(
    () => [],
    (error: unknown) => [unusable(settings, messageOf(error))],
  )
}

async function connect({ DATA_DIR, DATABASE_URL }: StoreSettings): Promise<Store> {
  if (DATABASE_URL === undefined) return await openSqlite(join(DATA_DIR, STORE_FILE))
  // Loads the driver only if it is needed.
  const { openPostgres } = await import('./postgres-store.ts')
  return openPostgres(DATABASE_URL)
}

function fileFaults(settings: StoreSettings): string[] {
  const { DATA_DIR, DATABASE_URL } = settings
  const paths = DATABASE_URL === undefined ? [DATA_DIR, join(DATA_DIR, STORE_FILE)] : []
  return missingRights(paths, 'write').map((reason) => unusable(settings, reason))
}

function unusable({ DATA_DIR, DATABASE_URL }: StoreSettings, reason: string): string {
  const place =
    DATABASE_URL === undefined
      ? `DATA_DIR "${DATA_DIR}" cannot be used: ${STORE_FILE}`
      : `DATABASE_URL: ${describeDatabase(DATABASE_URL)} cannot be used`
  return `${place}: ${reason}`
}

/**
 * The numbered SQL files that make the tables of both databases. So they use BIGINT for values beyond 2^31, INTEGER 0 and 1
 * for booleans, TEXT for times, and no generated row numbers.
 */
const MIGRATIONS = new URL('migrations/', import.meta.url)

/** A statement of a migration, which ends with a semicolon at the end of a line. */
const STATEMENT = /[^]+?;$/gm

const CREATE_LEDGER =
  'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)'
const LAST_APPLIED = "SELECT coalesce(max(name), '') AS name FROM migrations"
const RECORD = 'INSERT INTO migrations (name, applied_at) VALUES ($1, $2)'

/**
 * Applies the files of `migrations/` after the last applied one, in order. One transaction, so that processes that start
 * together take turns; none if all are applied, since it would wait for other writers.
 */
async function updateSchema(store: Store, mustExist: boolean): Promise<void> {
  const pending = await pendingMigrations(store).catch((error: unknown) => {
    // A new database has no ledger. Nothing is tried twice on one that does not answer.
    if (messageOf(error).includes('migrations')) return undefined
    throw error
  })
  if (pending?.length === 0) return
  if (pending === undefined && mustExist) throw new Error(NO_STORE)
  await store.transaction(async (queries) => {
    await queries.query(CREATE_LEDGER)
    for (const name of await pendingMigrations(queries)) {
      const text = readFileSync(new URL(name, MIGRATIONS), 'utf8')
      for (const [statement] of text.matchAll(STATEMENT)) await queries.query(statement)
      await queries.query(RECORD, [name, new Date().toISOString()])
    }
  })
}

/**
 * The files after the last applied one, in order. The first makes the tables of version 1.0.0, whose own migrations had the
 * numbers up to it.
 * @throws for the tables of a newer version, which this one would read and write wrongly.
 */
async function pendingMigrations(queries: Queries): Promise<string[]> {
  const [row] = await queries.query(LAST_APPLIED)
  const last = String(row?.['name'])
  const known = readdirSync(MIGRATIONS).toSorted()
  const newest = known.at(-1) ?? ''
  if (numberOf(last) > numberOf(newest))
    throw new Error(
      `its tables are of a newer version (${last}), and version ${VERSION} knows them up to ${newest}: ` +
        'start the newer version, or restore a backup of this one',
    )
  return known.filter((name) => numberOf(name) > numberOf(last))
}

function numberOf(name: string): number {
  return Number.parseInt(name, 10) || 0
}
