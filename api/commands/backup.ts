/** Entry point of `npm run backup`: copies an installation while everything runs (CONTRACT 9). */
import '../../pipeline/program/runtime.js'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pipeline } from 'node:stream/promises'
import {
  CURRENT_POINTER,
  RAW_FOLDER,
  SNAPSHOTS_FOLDER,
  STORE_FILE,
  makeDataFolder,
} from '../../pipeline/contract/files.ts'
import { UsageError, programOf, runAsProcess } from '../../pipeline/program/program.ts'
import { pluralize } from '../../pipeline/program/terminal.ts'
import { readSettings } from '../config.ts'
import { messageOf, unlessAbsent } from '../process/system-errors.ts'

/** The checksums of a backup, in the form of sha256sum; written last, so a backup without it is incomplete. */
export const CHECKSUMS_FILE = 'SHA256SUMS'

const LOG_FILE = `${STORE_FILE}-wal`

const DUMP =
  'Accounts, keys, limits and groups are in the database of DATABASE_URL, which needs a backup of its own: ' +
  'pg_dump --format=custom --file=rankings.dump "$DATABASE_URL"'

/** SQLite opens the store of a running service, and writes beside it, even to read. */
const NO_SERVICE =
  'if only the user of the service may, run this as that user; if its disk is read-only, copy DATA_DIR with cp -a'

/** Backs up into the folder of the arguments; resolves to the exit code. */
export const backup = programOf('npm run -s backup', {
  summary:
    'copies snapshots, raw usage and service.sqlite of DATA_DIR into the new folder TO while everything runs, and lists the ' +
    `checksums of all files in TO/${CHECKSUMS_FILE}. On the same file system snapshots become hard links. To restore, copy TO ` +
    'back to DATA_DIR while no service runs, and start the service, which compares every file with its checksum',
  takes: 'TO',
  options: {},
  async work({ environment, note }, _options, [given = '']) {
    const { DATA_DIR: from, DATABASE_URL: database } = readSettings(environment)
    const to = resolve(given)
    const store = database === undefined ? join(from, STORE_FILE) : undefined
    makeTarget(from, to, store)
    const files = await fill(from, to, store).catch((error: unknown) => {
      fs.rmSync(to, { recursive: true, force: true })
      throw error
    })
    note(`The backup in ${to} is complete: ${pluralize(files, 'file')}`)
    if (database !== undefined) note(DUMP)
  },
})

/** @throws UsageError if there is nothing to copy, or no place for it. */
function makeTarget(from: string, to: string, store = ''): void {
  const [snapshots, raw] = [resolve(from, SNAPSHOTS_FOLDER), resolve(from, RAW_FOLDER)]
  if (![snapshots, raw, store].some((path) => fs.existsSync(path)))
    throw new UsageError(
      `DATA_DIR ${from} holds nothing to back up: set DATA_DIR to the folder of the service`,
    )
  if (fs.existsSync(to) || [snapshots, raw].some((copied) => to.startsWith(`${copied}/`)))
    throw new UsageError(`${to} exists already or is inside of what is copied: name a new folder`)
  makeDataFolder(dirname(to))
  fs.mkdirSync(to, { mode: 0o700 })
}

/** Fills the new folder `to`; resolves to the number of its files. */
async function fill(from: string, to: string, store: string | undefined): Promise<number> {
  copyAll(from, to, store)
  // Any command that reads the store may remove the log.
  const paths = filesIn(to).filter((path) => !path.startsWith(CURRENT_POINTER) && path !== LOG_FILE)
  const lines: string[] = []
  for (const path of paths) lines.push(`${await checksumOf(join(to, path))}  ${path}\n`)
  fs.writeFileSync(join(to, CHECKSUMS_FILE), lines.join(''), { flush: true })
  // Copied back, the folder is a DATA_DIR: its published files are for the same users as before.
  fs.chmodSync(to, fs.statSync(from).mode)
  return paths.length
}

/** Copies the snapshots, then the raw usage, then the store: the run after a restore counts what came between. */
function copyAll(from: string, to: string, store: string | undefined): void {
  unlessAbsent(() => fs.symlinkSync(fs.readlinkSync(join(from, CURRENT_POINTER)), join(to, CURRENT_POINTER)))
  linkSnapshots(join(from, SNAPSHOTS_FOLDER), join(to, SNAPSHOTS_FOLDER))
  copyFiles(join(from, RAW_FOLDER), join(to, RAW_FOLDER), makePrivateFolder, fs.copyFileSync)
  if (store === undefined || !fs.existsSync(store)) return
  try {
    using database = new DatabaseSync(store, { readOnly: true })
    database.prepare('VACUUM INTO ?').run(join(to, STORE_FILE))
  } catch (error) {
    throw new UsageError(`${store} cannot be copied: ${messageOf(error)}; ${NO_SERVICE}`, { cause: error })
  }
  // Copied back, it takes the place of the log of a killed service, which SQLite would replay into the restored store.
  fs.writeFileSync(join(to, LOG_FILE), '')
}

/**
 * Links snapshots, whose files never change, or copies them to another file system, where they go on to share their
 * months. A snapshot that is pruned meanwhile is left out.
 */
function linkSnapshots(from: string, to: string): void {
  const copies = new Map<number, string>()
  copyFiles(from, to, makeDataFolder, (source, target) => {
    const { ino } = fs.statSync(source)
    try {
      fs.linkSync(copies.get(ino) ?? source, target)
    } catch {
      fs.copyFileSync(source, target, fs.constants.COPYFILE_FICLONE)
    }
    copies.set(ino, target)
  })
  for (const name of unlessAbsent(() => fs.readdirSync(to)) ?? [])
    if (!fs.existsSync(join(from, name))) fs.rmSync(join(to, name), { recursive: true })
}

/** Copies the finished files below a folder; one that is removed meanwhile is left out. */
function copyFiles(
  from: string,
  to: string,
  makeFolder: (path: string) => void,
  copy: (source: string, target: string) => void,
): void {
  for (const path of filesIn(from)) {
    makeFolder(dirname(join(to, path)))
    unlessAbsent(() => copy(join(from, path), join(to, path)))
  }
}

function makePrivateFolder(path: string): void {
  fs.mkdirSync(path, { recursive: true, mode: 0o700 })
}

/** The finished files below a folder, relative to it, in order. */
function filesIn(folder: string): string[] {
  const names = unlessAbsent(() => fs.readdirSync(folder)) ?? []
  const finished = names.filter((name) => !name.startsWith('.')).toSorted()
  return finished.flatMap((name) => {
    const found = fs.statSync(join(folder, name), { throwIfNoEntry: false })
    if (found?.isDirectory() === true) return filesIn(join(folder, name)).map((path) => join(name, path))
    return found?.isFile() === true ? [name] : []
  })
}

/** The SHA-256 of a file in hexadecimal; the file survives a power cut from then on. */
export async function checksumOf(path: string): Promise<string> {
  await using file = await open(path)
  await file.sync()
  const sha256 = createHash('sha256')
  await pipeline(file.createReadStream({ autoClose: false }), sha256)
  return sha256.digest('hex')
}

if (import.meta.main) await runAsProcess(backup)
