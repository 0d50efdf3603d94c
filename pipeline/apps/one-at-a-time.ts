/** Decisions about apps are taken one at a time, in whatever process: each starts from what the one before left. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { LockedError, messageOf } from '../errors.ts'

const PATIENCE_MS = 10_000

/**
 * Runs `work` while no other work of this kind runs on the same folder.
 * @throws LockedError when another one takes longer than ten seconds.
 */
export async function oneAtATime<T>(folder: string, work: () => Promise<T>): Promise<T> {
  if (!existsSync(folder)) return await work()
  // A lock that the system takes back when its process dies, whatever way; nothing is ever written to the file.
  const lock = new DatabaseSync(join(folder, '.decisions.lock'), { timeout: PATIENCE_MS })
  try {
    take(lock, folder)
    return await work()
  } finally {
    lock.close()
  }
}

function take(lock: DatabaseSync, folder: string): void {
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    throw new LockedError(
      `Another decision about the apps in ${folder} is under way (${messageOf(error)}); say it again`,
      {
        cause: error,
      },
    )
  }
}
