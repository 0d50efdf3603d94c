/** Decisions about apps are taken one at a time, in whatever process: each starts from what the one before left. */
import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { DataError, LockedError, messageOf } from '../errors.ts'

const PATIENCE_MS = 10_000

/** SQLite's code for a lock that another one holds (SQLITE_BUSY). */
const BUSY = 5

/**
 * Runs `work` while no other work of this kind runs on the same folder.
 * @throws LockedError when another one takes longer than ten seconds, DataError when the lock cannot be used.
 */
export async function oneAtATime<T>(folder: string, work: () => Promise<T>): Promise<T> {
  if (!existsSync(folder)) return await work()
  // A lock that the system takes back when its process dies, whatever way; nothing is ever written to the file.
  const path = join(folder, '.decisions.lock')
  const lock = new DatabaseSync(path, { timeout: PATIENCE_MS, open: false })
  try {
    take(lock, path)
    return await work()
  } finally {
    if (lock.isOpen) lock.close()
  }
}

function take(lock: DatabaseSync, path: string): void {
  try {
    lock.open()
    lock.exec('BEGIN EXCLUSIVE')
    // On a file that may only be read, SQLite begins a transaction that keeps nobody out.
    accessSync(path, constants.W_OK)
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === BUSY) {
      throw new LockedError(`Another decision about the apps is under way, and holds ${path}; say it again`, {
        cause: error,
      })
    }
    throw new DataError(
      `${path} cannot be locked: ${messageOf(error)}. Give the user of the command the right to write it and its ` +
        'folder; where it is no empty file, remove it',
      { cause: error },
    )
  }
}
