/** The drop folder, DATA_DIR/raw: which files there are, of which day and format (CONTRACT 7). */
import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { join } from 'node:path'
import { daySchema } from '../contract/calendar.ts'
import { DataError, messageOf } from '../errors.ts'

export type Format = 'parquet' | 'ndjson' | 'csv' | 'arrow'
export type Compression = 'none' | 'gz' | 'zst'

export type RawFile = {
  /** Absolute path. */
  readonly path: string
  /** Path below raw/, as reports and the quarantine name it. */
  readonly name: string
  readonly format: Format
  readonly compression: Compression
  readonly bytes: number
  /**
   * Changes when the file does: size in bytes, modification time and change time in nanoseconds. A file may be replaced
   * by one of the same size and modification time (`cp -p`, `rsync -t`); the change time can be set by nobody. It
   * changes with the file's rights, too: counting a day again for nothing is cheap, missing a correction is not.
   */
  readonly stamp: string
}

export type UsageDay = {
  readonly day: string
  readonly files: readonly RawFile[]
}

const DAY_FOLDER = /^date=(\d{4}-\d{2}-\d{2})$/
const FILE_NAME = /\.(?:(parquet)|(arrow)|(?:(csv)|(?:ndjson|jsonl|json))(?:\.(gz|zst))?)$/i
const KNOWN_NAMES = 'Expected .parquet, .arrow, .ndjson or .csv (the latter two also .gz or .zst)'

/**
 * Names of files that are unfinished or for others. DuckDB puts `tmp_` before the name of a file that it writes over:
 * before that of one begun by an import, for instance.
 */
const PASSED_OVER = /^(?:[._]|tmp_\.)/

/** Whether a file or folder of this name is no raw data. */
export function isPassedOver(name: string): boolean {
  return PASSED_OVER.test(name)
}

/**
 * The days of raw/usage, oldest first; none when the folder does not exist.
 * @throws DataError for a folder that names no day and for a file of no known format: usage that is not read
 * must not go unnoticed. Names that begin with `.`, `_` or `tmp_.` are unfinished or for others, and are passed over.
 */
export function listUsageDays(rawFolder: string): UsageDay[] {
  return entries(join(rawFolder, 'usage'))
    .map((entry) => {
      const day = DAY_FOLDER.exec(entry.name)?.[1]
      if (day === undefined || !daySchema.safeParse(day).success || !isFolder(entry)) {
        throw new DataError(
          `usage/${entry.name} is not a day: expected a folder date=YYYY-MM-DD. Move it away or rename it; ` +
            'npm run nightly -- import FILE sorts the rows of a file into the folders of their days',
        )
      }
      return { day, files: listFiles(rawFolder, join('usage', entry.name)) }
    })
    .filter(({ files }) => files.length > 0)
}

/** A folder, or a link that leads to one. */
function isFolder(entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory()
  return statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.isDirectory() === true
}

/** The files of the app registry, raw/apps, in the order of their names. */
export function listRegistryFiles(rawFolder: string): RawFile[] {
  return listFiles(rawFolder, 'apps')
}

/** The same files give the same text; a file added, removed or changed gives another. */
export function fingerprintOf(files: readonly RawFile[]): string {
  return files.map(({ name, stamp }) => `${name} ${stamp}`).join('\n')
}

function listFiles(rawFolder: string, folder: string): RawFile[] {
  return entries(join(rawFolder, folder)).map((entry) =>
    rawFile(join(rawFolder, folder, entry.name), join(folder, entry.name)),
  )
}

/**
 * A file of raw data by its path, its format told by its ending.
 * @param name how messages call it.
 * @throws DataError when there is no such file or its name ends in no known way.
 */
function rawFile(path: string, name: string): RawFile {
  const found = FILE_NAME.exec(name)
  const facts = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (facts === undefined) throw new DataError(`${name} does not exist (any more)`)
  const format = formatNamed(name)
  if (found === null || format === undefined || !facts.isFile()) {
    throw new DataError(`${name} is no file that can be read. ${KNOWN_NAMES}`)
  }
  return {
    path,
    name,
    format,
    compression: compressionOf(found[4]),
    bytes: Number(facts.size),
    stamp: `${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}`,
  }
}

/** The format that the ending of a name tells; undefined for any other ending. */
export function formatNamed(name: string): Format | undefined {
  const found = FILE_NAME.exec(name)
  if (found === null) return undefined
  return found[1] ? 'parquet' : found[2] ? 'arrow' : found[3] ? 'csv' : 'ndjson'
}

/**
 * Asks before a file is opened, where a missing right would be told as damage.
 * @throws DataError when we may not read the file.
 */
export function requireReadable({ path, name }: RawFile): void {
  try {
    accessSync(path, constants.R_OK)
  } catch (error) {
    // One that is gone by now is told of by who opens it.
    if (codeOf(error) === 'EACCES') throw refused(name, error)
  }
}

function refused(what: string, cause: unknown): DataError {
  return new DataError(`${what} may not be read; give the user of the run the right to, and run again`, {
    cause,
  })
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function compressionOf(ending: string | undefined): Compression {
  const lower = ending?.toLowerCase()
  return lower === 'gz' || lower === 'zst' ? lower : 'none'
}

function entries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => !isPassedOver(name))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    if (codeOf(error) === 'EACCES') throw refused(`The folder ${folder}`, error)
    throw new DataError(`Cannot read the folder ${folder}: ${messageOf(error)}`, { cause: error })
  }
}
