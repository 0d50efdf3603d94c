/** Temporary files and folders of one process. */
import { randomUUID } from 'node:crypto'
import { globSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { millisecondsInDay } from 'date-fns/constants'

/** Runs `work` with a path in `folder` that no other process uses, and removes the path afterwards. */
export async function withOwnPath<T>(
  folder: string,
  prefix: string,
  work: (path: string) => Promise<T>,
): Promise<T> {
  const path = join(folder, `${prefix}${randomUUID()}`)
  try {
    return await work(path)
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
}

/**
 * Removes what killed processes left in a folder under such names: everything that has not changed for a day, since the
 * owner of a younger one may live, also in another container.
 */
export function clearLeft(folder: string, prefix: string): void {
  for (const name of globSync(`${prefix}*`, { cwd: folder })) {
    const path = join(folder, name)
    const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
    if (changedAt < Date.now() - millisecondsInDay) rmSync(path, { recursive: true, force: true })
  }
}
