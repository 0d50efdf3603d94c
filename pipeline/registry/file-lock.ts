/** A file lock across processes; the system releases it when its holder dies. */
import { accessSync, constants } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { DataError, isShortage, messageOf } from '../errors.ts'
import type { LockedError } from '../errors.ts'

/** SQLite's code for a held lock (SQLITE_BUSY). */
const BUSY = 5

const RETRY_MS = 50

export type LockOptions = {
  /** How long to wait for the lock. */
  readonly patienceMs: number
  /** Makes the error for a lock that stays held; gets the path of the lock. */
  readonly busy: (path: string) => LockedError
}

/**
 * Runs `work` under the lock at `path`, an empty file that is created if missing.
 * @throws the error of `busy`, or a DataError if the lock file cannot be used.
 */
export async function withFileLock<T>(
  path: string,
  { patienceMs, busy }: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  const lock = new DatabaseSync(path, { open: false })
  const deadline = Date.now() + patienceMs
  try {
    while (!tryToTake(lock, path)) {
      if (Date.now() >= deadline) throw busy(path)
      await sleep(RETRY_MS)
    }
    return await work()
  } finally {
    if (lock.isOpen) lock.close()
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === BUSY
}

/** False if another process holds the lock. */
function tryToTake(lock: DatabaseSync, path: string): boolean {
  try {
    if (!lock.isOpen) lock.open()
    lock.exec('BEGIN EXCLUSIVE')
    // On a read-only file, SQLite begins a transaction that excludes nobody.
    accessSync(path, constants.W_OK)
    return true
  } catch (error) {
    if (isBusy(error)) return false
    if (isShortage(error)) throw error
    throw new DataError(
      `${path} cannot be locked: ${messageOf(error)}. Give the user of the command the right to write it and its ` +
        'folder; if it is not an empty file, remove it',
      { cause: error },
    )
  }
}
