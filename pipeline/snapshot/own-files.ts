/** Temporary files and folders of one process. */
import { randomUUID } from 'node:crypto'
import { globSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { millisecondsInDay } from 'date-fns/constants'

/** A path in `folder` that no other process uses; what is there is removed at the end of the scope. */
export function ownPath(folder: string, prefix: string): Disposable & { readonly path: string } {
  const path = join(folder, `${prefix}${randomUUID()}`)
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/**
 * Removes what killed processes left in a folder under such names: everything that has not changed for a day, since the
 * owner of a younger one may live, also in another container.
 */
export function removeLeftovers(folder: string, prefix: string): void {
  for (const name of globSync(`${prefix}*`, { cwd: folder })) {
    const path = join(folder, name)
    const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
    if (changedAt < Date.now() - millisecondsInDay) rmSync(path, { recursive: true, force: true })
  }
}
