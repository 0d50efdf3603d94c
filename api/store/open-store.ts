/** Opens the service's store: the database of DATABASE_URL, or else the file `service.sqlite` in DATA_DIR. */
import { join } from 'node:path'
import { STORE_FILE, makeDataFolder } from '../../pipeline/contract/files.ts'
import type { Settings } from '../config.ts'
import { OperatorError } from '../http/errors.ts'
import { missingRights } from '../process/rights.ts'
import { describeDatabase } from './database-url.ts'
import { updateSchema } from './schema.ts'
import { openSqlite } from './sqlite-store.ts'
import type { Store } from './store.ts'

/** The settings that locate the store. */
export type StoreSettings = Pick<Settings, 'DATA_DIR' | 'DATABASE_URL'>

/**
 * Opens the store, creates the file if it is missing, and applies pending migrations.
 * @throws {OperatorError} if the database is unusable or the folder is not writable.
 */
export async function openStore(settings: StoreSettings, now: Date): Promise<Store> {
  const { DATA_DIR, DATABASE_URL } = settings
  if (DATABASE_URL === undefined) {
    try {
      makeDataFolder(DATA_DIR)
    } catch (error) {
      throw unusable(`DATA_DIR "${DATA_DIR}"`, error)
    }
  }
  let store: Store | undefined
  try {
    store = await connect(settings)
    await updateSchema(store, now)
    return store
  } catch (error) {
    await store?.close()
    throw unusable(nameOf(settings), reasonOf(error, settings))
  }
}

/** Why the store cannot be opened, a sentence each; empty if it can. Changes nothing. */
export async function storeFaults(settings: StoreSettings): Promise<string[]> {
  const { DATA_DIR, DATABASE_URL } = settings
  if (DATABASE_URL === undefined)
    return fileFaults(settings).map((reason) => unusable(`DATA_DIR "${DATA_DIR}"`, reason).message)
  const store = await connect(settings)
  try {
    await store.query('SELECT 1 AS one')
    return []
  } catch (error) {
    return [unusable(nameOf(settings), error).message]
  } finally {
    await store.close()
  }
}

async function connect({ DATA_DIR, DATABASE_URL }: StoreSettings): Promise<Store> {
  if (DATABASE_URL === undefined) return await openSqlite(join(DATA_DIR, STORE_FILE))
  // Loads the driver only if it is needed.
  const { openPostgres } = await import('./postgres-store.ts')
  return openPostgres(DATABASE_URL)
}

function nameOf({ DATA_DIR, DATABASE_URL }: StoreSettings): string {
  if (DATABASE_URL === undefined) return `file "${join(DATA_DIR, STORE_FILE)}"`
  return `DATABASE_URL: ${describeDatabase(DATABASE_URL)}`
}

function fileFaults({ DATA_DIR }: StoreSettings): readonly string[] {
  return missingRights([DATA_DIR, join(DATA_DIR, STORE_FILE)], 'write')
}

/** For a missing permission SQLite only reports that it cannot open the file. */
function reasonOf(error: unknown, settings: StoreSettings): unknown {
  const missing = settings.DATABASE_URL === undefined ? fileFaults(settings) : []
  return missing.length > 0 ? missing.join(', ') : error
}

function unusable(name: string, reason: unknown): OperatorError {
  return new OperatorError(`${name} cannot be used: ${textOf(reason)}`, { cause: reason })
}

// A host with several addresses fails with an AggregateError, which has no message.
function textOf(reason: unknown): string {
  if (reason instanceof AggregateError) return reason.errors.map(textOf).join(', ')
  return reason instanceof Error ? reason.message : String(reason)
}
