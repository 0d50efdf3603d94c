/** What the tests of a file make, and remove at its end: temporary folders, and servers that they share. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

const removals: (() => unknown)[] = []

/** Does `remove` after the last test of the file; what was made last goes first. */
export function atEnd(remove: () => unknown): void {
  removals.push(remove)
}

/** Removes what the tests of a file made; setup.ts calls it after each. */
export async function removeMade(): Promise<void> {
  for (const remove of removals.splice(0).toReversed()) await remove()
}

/** A new temporary folder of this name: a DATA_DIR, or another. */
export function makeFolder(name = 'data'): string {
  const outer = realpathSync(mkdtempSync(join(tmpdir(), 'app-rankings-test-')))
  atEnd(() => rmSync(outer, { recursive: true, force: true }))
  const folder = join(outer, name)
  mkdirSync(folder)
  return folder
}

/** A copy of a DATA_DIR. Its files are new, so the first run counts every day again, with the same figures. */
export function copyFolder(source: string): string {
  const folder = makeFolder()
  cpSync(source, folder, { recursive: true, verbatimSymlinks: true })
  return folder
}

/** Paths of the files below a folder, relative to it and sorted. */
export function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((entry) => relative(folder, join(entry.parentPath, entry.name))).toSorted()
}
