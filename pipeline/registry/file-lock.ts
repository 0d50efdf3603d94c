/** A lock over processes that the system takes back when its holder dies, whatever way. */
import { accessSync, constants } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { DataError, messageOf } from '../errors.ts'
import type { LockedError } from '../errors.ts'

/** SQLite's code for a lock that another one holds (SQLITE_BUSY). */
const BUSY = 5

const RETRY_MS = 50

export type LockOptions = {
  /** How long to wait for another holder. */
  readonly patienceMs: number
  /** What to throw when that was not enough; it is given the path of the lock. */
  readonly busy: (path: string) => LockedError
}

/**
 * Runs `work` while no other work holds the lock file at `path`, which is made where it is missing and stays empty.
 * @throws what `busy` gives, or a DataError when the lock file cannot be used.
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

/** Whether SQLite found a file locked by another one. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === BUSY
}

/** False while another one holds it. */
function tryToTake(lock: DatabaseSync, path: string): boolean {
  try {
    if (!lock.isOpen) lock.open()
    lock.exec('BEGIN EXCLUSIVE')
    // On a file that may only be read, SQLite begins a transaction that keeps nobody out.
    accessSync(path, constants.W_OK)
    return true
  } catch (error) {
    if (isBusy(error)) return false
    throw new DataError(
      `${path} cannot be locked: ${messageOf(error)}. Give the user of the command the right to write it and its ` +
        'folder; where it is no empty file, remove it',
      { cause: error },
    )
  }
}
