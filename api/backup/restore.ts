/** Restores a backup into an empty DATA_DIR. Everything is first copied aside; the pointer is created last. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { CURRENT_POINTER, SNAPSHOTS_FOLDER, makeDataFolder } from '../../pipeline/contract/files.ts'
import { OperatorError } from '../http/errors.ts'
import { copyOne, syncToDisk, type Copied } from './copy.ts'
import { readWholeBackup, type Manifest } from './manifest.ts'

const ASIDE = '.restoring'

/** A file system may create lost+found. */
const IGNORED = ['lost+found', ASIDE]

/**
 * Restores the backup in the folder `from`.
 * @throws {OperatorError} if the backup is incomplete, or DATA_DIR is not empty; then nothing is changed.
 */
export async function restore(from: string, dataDir: string): Promise<Manifest> {
  const present = existsSync(dataDir) ? await readdir(dataDir) : []
  const others = present.filter((name) => !IGNORED.includes(name))
  if (others.length > 0) {
    throw new OperatorError(
      `DATA_DIR ${dataDir} is not empty (${others.slice(0, 5).join(', ')}): stop the service and move these files away, or ` +
        'name another folder',
    )
  }
  const manifest = await readWholeBackup(from)
  makeDataFolder(dataDir)
  const aside = join(dataDir, ASIDE)
  // Left by a restore that was interrupted.
  await rm(aside, { recursive: true, force: true })
  await mkdir(aside)
  const copied: Copied = new Map()
  for (const { path } of manifest.files)
    await copyOne(join(from, path), join(aside, path), { isFixed: false, copied })
  for (const name of await readdir(aside)) await rename(join(aside, name), join(dataDir, name))
  if (manifest.current !== null) {
    await symlink(join(SNAPSHOTS_FOLDER, manifest.current), join(dataDir, CURRENT_POINTER))
  }
  await rm(aside, { recursive: true })
  await syncToDisk(dataDir)
  return manifest
}
