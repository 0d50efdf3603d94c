/**
 * Files and folders that one process alone uses. If it is killed, a later one removes them: its lock tells whether it
 * lives. Process ids do not, since processes of two containers may have one number and do not see each other.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, globSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isBusy } from '../registry/file-lock.ts'

/** Begins the name of a lock; the name that it is for follows. */
const LOCK_PREFIX = '.lock'

function lockOf(path: string): string {
  return join(dirname(path), `${LOCK_PREFIX}${basename(path)}`)
}

/** Runs `work` with a path in `folder` that nobody else uses, and removes what is there afterwards. */
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
  // Whoever clears away may have been quicker than our lock, and have removed its file.
  if (lock === 'held') return takePath(folder, prefix)
  if (lock === undefined || existsSync(lockOf(path))) return { path, lock }
  lock.close()
  return takePath(folder, prefix)
}

/** Removes from a folder what killed processes left under such names. */
export function clearLeft(folder: string, prefix: string): void {
  const locks = globSync(`${LOCK_PREFIX}${prefix}*`, { cwd: folder }).map((name) =>
    name.slice(LOCK_PREFIX.length),
  )
  for (const name of new Set([...locks, ...globSync(`${prefix}*`, { cwd: folder })])) {
    const path = join(folder, name)
    // The lock is there before the path, and goes after it.
    const lock = existsSync(lockOf(path)) ? takeLock(lockOf(path)) : 'missing'
    if (lock === 'held' || lock === undefined) continue
    rmSync(path, { recursive: true, force: true })
    if (lock !== 'missing') releaseLock(lock, path)
  }
}

/** The lock; undefined where there can be none, in a folder that may only be read for instance. */
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

/** The file goes first: who finds it meanwhile finds it locked. */
function releaseLock(lock: DatabaseSync, path: string): void {
  rmSync(lockOf(path), { force: true })
  lock.close()
}
