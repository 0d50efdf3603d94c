import { dirname, join } from 'node:path'
import { STORE_FILE, makeDataFolder } from '../../pipeline/contract/files.ts'
import type { Settings } from '../config.ts'
import { describeDatabase, isDatabaseUrl } from './database-url.ts'
import { OperatorError } from '../http/errors.ts'
import { missingRights } from '../process/rights.ts'
import { updateSchema } from './schema.ts'
import { openSqlite } from './sqlite-store.ts'
import type { Store } from './store.ts'

/** The settings that locate the store. */
export type StoreSettings = Pick<Settings, 'DATA_DIR' | 'DATABASE_URL'>

/**
 * Opens the service's store and applies pending migrations. The store is the database of DATABASE_URL, or else the file
 * `service.sqlite` in DATA_DIR, which is created if it is missing.
 * @throws {OperatorError} if the database is unusable or the folder is not writable.
 */
export async function openStore({ DATA_DIR, DATABASE_URL }: StoreSettings, now: Date): Promise<Store> {
  const upToDate = (store: Store) => updateSchema(store, now)
  if (DATABASE_URL !== undefined) {
    return await open(`DATABASE_URL: ${describeDatabase(DATABASE_URL)}`, DATABASE_URL, upToDate)
  }
  try {
    makeDataFolder(DATA_DIR)
  } catch (error) {
    throw unusable(`DATA_DIR "${DATA_DIR}"`, error)
  }
  const file = join(DATA_DIR, STORE_FILE)
  return await open(`file "${file}"`, file, upToDate)
}

/** Why the store cannot be opened, a sentence each; empty if it can. Changes nothing. */
export async function storeFaults({ DATA_DIR, DATABASE_URL }: StoreSettings): Promise<string[]> {
  if (DATABASE_URL === undefined) {
    const reasons = missingRights([DATA_DIR, join(DATA_DIR, STORE_FILE)], 'write')
    return reasons.map((reason) => `DATA_DIR "${DATA_DIR}" cannot be used: ${reason}`)
  }
  const store = await openDatabase(DATABASE_URL)
  return await faultOf(`DATABASE_URL: ${describeDatabase(DATABASE_URL)}`, async () => {
    try {
      await store.query('SELECT 1 AS one')
    } finally {
      await store.close()
    }
  })
}

async function faultOf(name: string, work: () => Promise<void>): Promise<string[]> {
  try {
    await work()
    return []
  } catch (error) {
    return [unusable(name, error).message]
  }
}

async function open(
  name: string,
  place: string,
  prepare: (store: Store) => Promise<unknown>,
): Promise<Store> {
  let store: Store | undefined
  try {
    store = isDatabaseUrl(place) ? await openDatabase(place) : await openSqlite(place)
    await prepare(store)
    return store
  } catch (error) {
    await store?.close()
    // For a missing permission SQLite only reports that it cannot open the file.
    const rights = isDatabaseUrl(place) ? [] : missingRights([dirname(place), place], 'write')
    throw unusable(name, rights.length > 0 ? new Error(rights.join(', ')) : error)
  }
}

async function openDatabase(url: string): Promise<Store> {
  // Loads the driver only if it is needed.
  const { openPostgres } = await import('./postgres-store.ts')
  return openPostgres(url)
}

function unusable(name: string, error: unknown): OperatorError {
  return new OperatorError(`${name} cannot be used: ${reasonOf(error)}`, { cause: error })
}

// A host with several addresses fails with an AggregateError, which has no message.
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join(', ')
  return error instanceof Error ? error.message : String(error)
}
