/**
 * Temporary files and folders of one process. After a kill, a later process removes them: a file lock shows whether the
 * owner lives. Process ids would not: processes of two containers may share one and do not see each other.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, globSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isBusy } from '../registry/file-lock.ts'

/** Prefix of a lock's name; the name of the locked file follows. */
const LOCK_PREFIX = '.lock'

function lockOf(path: string): string {
  return join(dirname(path), `${LOCK_PREFIX}${basename(path)}`)
}

/** Runs `work` with an exclusive path in `folder`, and removes the path afterwards. */
export async function withOwnPath<T>(
  folder: string,
  prefix: string,
  work: (path: string) => Promise<T>,
): Promise<T> {
  const { path, lock } = takePath(folder, prefix)
  try {
    return await work(path)
  } finally {
    rmSync(path, { recursive: true, force: true })
    if (lock !== undefined) releaseLock(lock, path)
  }
}

function takePath(folder: string, prefix: string): { path: string; lock: DatabaseSync | undefined } {
  const path = join(folder, `${prefix}${randomUUID()}`)
  const lock = takeLock(lockOf(path))
  // Another process may have removed the lock file just before this one locked it.
  if (lock === 'held') return takePath(folder, prefix)
  if (lock === undefined || existsSync(lockOf(path))) return { path, lock }
  lock.close()
  return takePath(folder, prefix)
}

/** Removes the files that killed processes left in a folder under such names. */
export function clearLeft(folder: string, prefix: string): void {
  const locks = globSync(`${LOCK_PREFIX}${prefix}*`, { cwd: folder }).map((name) =>
    name.slice(LOCK_PREFIX.length),
  )
  for (const name of new Set([...locks, ...globSync(`${prefix}*`, { cwd: folder })])) {
    const path = join(folder, name)
    // The lock is made before the path and removed after it.
    const lock = existsSync(lockOf(path)) ? takeLock(lockOf(path)) : 'missing'
    if (lock === 'held' || lock === undefined) continue
    rmSync(path, { recursive: true, force: true })
    if (lock !== 'missing') releaseLock(lock, path)
  }
}

/** The lock; undefined if none can be made, in a read-only folder for instance. */
function takeLock(path: string): DatabaseSync | 'held' | undefined {
  const lock = new DatabaseSync(path, { open: false })
  try {
    lock.open()
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    if (lock.isOpen) lock.close()
    return isBusy(error) ? 'held' : undefined
  }
}

/** The file is removed first: until then other processes find it locked. */
function releaseLock(lock: DatabaseSync, path: string): void {
  rmSync(lockOf(path), { force: true })
  lock.close()
}
