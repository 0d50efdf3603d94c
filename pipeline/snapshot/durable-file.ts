/** Files that are whole or absent, also after a power cut. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Writes a file atomically; readers of the folder skip its temporary name, which begins with a dot. */
export function writeInOneStep(path: string, text: string): void {
  const aside = join(dirname(path), `.${basename(path)}`)
  try {
    writeFileSync(aside, text)
    putInPlace(aside, path)
  } finally {
    rmSync(aside, { force: true })
  }
}

/** Renames a complete file, or a folder of synced files, to its final path. */
export function putInPlace(aside: string, path: string): void {
  syncToDisk(aside)
  renameSync(aside, path)
  syncToDisk(dirname(path))
}

/** Syncs a file, or the names in a folder, to disk. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
