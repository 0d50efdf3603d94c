/** Files that are there whole or not at all, also after a power cut. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Where a file is written before it stands at `path`: readers of the folder pass over names that begin with a dot. */
function asideOf(path: string): string {
  return join(dirname(path), `.${basename(path)}`)
}

/** Writes a file in one step. */
export function writeInOneStep(path: string, text: string): void {
  const aside = asideOf(path)
  try {
    writeFileSync(aside, text)
    putInPlace(aside, path)
  } finally {
    rmSync(aside, { force: true })
  }
}

/** Gives what is complete, a file or a folder whose files are synced, the name by which it is found. */
export function putInPlace(aside: string, path: string): void {
  syncToDisk(aside)
  renameSync(aside, path)
  syncToDisk(dirname(path))
}

/** Makes a file, or the names in a folder, survive a power cut. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
