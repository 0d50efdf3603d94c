/** A file lock across processes; the system releases it when its holder dies. */
import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { DataError, messageOf } from '../errors.ts'

/** SQLite's code for a held lock (SQLITE_BUSY). */
const BUSY = 5

const RETRY_MS = 50

/**
 * Runs `work` under the lock at `path`, an empty file that is created if missing.
 * @param busy makes the error for a lock that stays held for `patienceMs`.
 * @throws the error of `busy`, or a DataError if the lock file cannot be used.
 */
export async function withFileLock<T>(
  path: string,
  { patienceMs, busy }: { readonly patienceMs: number; readonly busy: (path: string) => Error },
  work: () => Promise<T>,
): Promise<T> {
  const lock = new DatabaseSync(path, { open: false })
  const deadline = Date.now() + patienceMs
  try {
    while (!isTaken(lock, path)) {
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
function isTaken(lock: DatabaseSync, path: string): boolean {
  try {
    if (!lock.isOpen) lock.open()
    lock.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if (isBusy(error)) return false
    throw new DataError(`${path} cannot be locked: ${messageOf(error)}`, { cause: error })
  }
}
