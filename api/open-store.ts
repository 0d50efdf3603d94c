import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from './errors.ts'
import { migrate } from './migrate.ts'
import { openSqlite, type Store } from './store.ts'

/**
 * Opens the service's store in `dataDir`, which is made where it is missing, and brings its tables up to date.
 * @throws {OperatorError} when the folder cannot be written.
 */
export async function openStore(dataDir: string, now: Date): Promise<Store> {
  try {
    mkdirSync(dataDir, { recursive: true })
    const store = openSqlite(join(dataDir, 'service.sqlite'))
    await migrate(store, now)
    return store
  } catch (error) {
    throw new OperatorError(`DATA_DIR "${dataDir}" cannot be used: ${String(error)}`, { cause: error })
  }
}
