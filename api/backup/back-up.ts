/**
 * Backs up a running installation: first the snapshots, then the raw usage, then the store. Data that is written
 * meanwhile may be incomplete in the backup; the next run after a restore counts it.
 */
import { existsSync } from 'node:fs'
import { access, constants, mkdir, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { asOfFromId } from '../../pipeline/contract/calendar.ts'
import { CURRENT_POINTER, RAW_FOLDER, SNAPSHOTS_FOLDER, STORE_FILE } from '../../pipeline/contract/files.ts'
import { VERSION } from '../../pipeline/contract/version.ts'
import { OperatorError } from '../http/errors.ts'
import { copyBelow, sha256Of, syncToDisk, type Copied } from './copy.ts'
import { MANIFEST_FILE, type BackupFile, type Manifest } from './manifest.ts'

export interface BackupOptions {
  readonly dataDir: string
  /** The folder of the backup; created by the run. */
  readonly to: string
  /** Whether accounts and keys are in a separate database. */
  readonly hasDatabase: boolean
  readonly now: Date
}

/** Usage records that an older version stored apart from raw usage. */
const OLD_RECORDS_FOLDER = 'spool'

/** All pages in one step, so that no writer makes it start again. */
const PAGES_AT_ONCE = 2_147_483_647

/**
 * Copies snapshots, raw usage and store, and writes a manifest with the checksum of each file.
 * @throws {OperatorError} if there is nothing to back up, or the folder is unsuitable.
 */
export async function backUp({ dataDir, to, hasDatabase, now }: BackupOptions): Promise<Manifest> {
  await prepareFolder(dataDir, to)
  const current = await currentId(dataDir)
  const copied: Copied = new Map()
  const paths = await copySnapshots(dataDir, to, copied)
  for (const part of [RAW_FOLDER, OLD_RECORDS_FOLDER]) {
    const below = await copyBelow(join(dataDir, part), join(to, part), { isFixed: false, copied })
    paths.push(...below.map((path) => join(part, path)))
  }
  const hasStore = !hasDatabase && existsSync(join(dataDir, STORE_FILE))
  if (hasStore) await copyStore(join(dataDir, STORE_FILE), join(to, STORE_FILE))
  const manifest: Manifest = {
    version: VERSION,
    made_at: now.toISOString(),
    current: newestOf(paths, current),
    store: hasDatabase ? 'database' : hasStore ? STORE_FILE : 'none',
    files: await measure(to, hasStore ? [...paths, STORE_FILE] : paths),
  }
  await writeFile(join(to, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`, { flush: true })
  await syncToDisk(to)
  return manifest
}

async function prepareFolder(dataDir: string, to: string): Promise<void> {
  const parts = [RAW_FOLDER, SNAPSHOTS_FOLDER, OLD_RECORDS_FOLDER]
  if (!parts.some((part) => existsSync(join(dataDir, part))) && !existsSync(join(dataDir, STORE_FILE))) {
    throw new OperatorError(`DATA_DIR ${dataDir} holds nothing to back up`)
  }
  const isInside = (part: string) => `${resolve(to)}/`.startsWith(`${resolve(dataDir, part)}/`)
  if (parts.some(isInside))
    throw new OperatorError(`${to} is inside the data to back up: name another folder`)
  await mkdir(to, { recursive: true })
  if ((await readdir(to)).length > 0) {
    throw new OperatorError(`${to} is not empty: each backup needs a folder of its own`)
  }
}

/** The identifier behind the pointer. */
async function currentId(dataDir: string): Promise<string | undefined> {
  try {
    return basename(await readlink(join(dataDir, CURRENT_POINTER)))
  } catch {
    return undefined
  }
}

/** Snapshots, and the records of all past ones. A snapshot that is removed meanwhile is left out as a whole. */
async function copySnapshots(dataDir: string, to: string, copied: Copied): Promise<string[]> {
  const source = join(dataDir, SNAPSHOTS_FOLDER)
  const found = existsSync(source) ? await readdir(source, { withFileTypes: true }) : []
  // The pipeline has no files beside the folders.
  const names = found.flatMap((each) => (each.isFile() || each.name.startsWith('.') ? [] : [each.name]))
  const paths: string[] = []
  for (const name of names.toSorted()) {
    const target = join(to, SNAPSHOTS_FOLDER, name)
    const below = await copyBelow(join(source, name), target, { isFixed: true, copied })
    if (existsSync(join(source, name))) {
      paths.push(...below.map((path) => join(SNAPSHOTS_FOLDER, name, path)))
    } else {
      await rm(target, { recursive: true, force: true })
    }
  }
  return paths
}

/** The current snapshot, or else the newest in the backup. */
function newestOf(paths: readonly string[], current: string | undefined): string | null {
  const ids = paths.flatMap((path) => {
    const [folder, id = ''] = path.split('/')
    return folder === SNAPSHOTS_FOLDER && asOfFromId(id) !== undefined ? [id] : []
  })
  return ids.find((id) => id === current) ?? ids.toSorted().at(-1) ?? null
}

/** A consistent copy, whatever other processes write meanwhile. */
async function copyStore(source: string, target: string): Promise<void> {
  // For a missing permission SQLite only reports that it cannot open the file.
  await access(source, constants.R_OK)
  const database = new DatabaseSync(source, { readOnly: true })
  try {
    await backup(database, target, { rate: PAGES_AT_ONCE })
  } finally {
    database.close()
  }
  await syncToDisk(target)
}

async function measure(folder: string, paths: readonly string[]): Promise<BackupFile[]> {
  const files: BackupFile[] = []
  for (const path of paths) files.push({ path, ...(await sha256Of(join(folder, path))) })
  return files
}
