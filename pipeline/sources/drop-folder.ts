/** The drop folder, DATA_DIR/raw: lists its files by day and format (CONTRACT 7). */
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
  /** Path below raw/, for reports and the quarantine. */
  readonly name: string
  readonly format: Format
  readonly compression: Compression
  readonly bytes: number
  /**
   * Identifies the file's content: size in bytes, modification time and change time in nanoseconds. `cp -p` and `rsync -t`
   * can replace a file by one of the same size and modification time, but nothing can set the change time. It also changes
   * with the file's rights; counting a day again for nothing is cheap, missing a correction is not.
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
 * Prefixes of unfinished or foreign files. DuckDB puts `tmp_` before the name of a file that it is writing, such as an
 * import's file.
 */
const PASSED_OVER = /^(?:[._]|tmp_\.)/

export function isPassedOver(name: string): boolean {
  return PASSED_OVER.test(name)
}

/**
 * The days of raw/usage, oldest first; none when the folder does not exist.
 * @throws DataError for a folder that is not a day and for a file of unknown format: usage must not be skipped unnoticed.
 * Skips names that begin with `.`, `_` or `tmp_.`, which are unfinished or foreign.
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

/** A folder, or a link to one. */
function isFolder(entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory()
  return statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.isDirectory() === true
}

/** The files of the app registry, raw/apps, by name. */
export function listRegistryFiles(rawFolder: string): RawFile[] {
  return listFiles(rawFolder, 'apps')
}

/** Text that is equal for the same files, and differs if a file is added, removed or changed. */
export function fingerprintOf(files: readonly RawFile[]): string {
  return files.map(({ name, stamp }) => `${name} ${stamp}`).join('\n')
}

function listFiles(rawFolder: string, folder: string): RawFile[] {
  return entries(join(rawFolder, folder)).map((entry) =>
    rawFile(join(rawFolder, folder, entry.name), join(folder, entry.name)),
  )
}

/**
 * A file of raw data; its ending decides its format.
 * @param name the file's name in messages.
 * @throws DataError if there is no such file or its ending is unknown.
 */
function rawFile(path: string, name: string): RawFile {
  const found = FILE_NAME.exec(name)
  const facts = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (facts === undefined) throw new DataError(`${name} does not exist`)
  const format = formatNamed(name)
  if (found === null || format === undefined || !facts.isFile()) {
    throw new DataError(`${name} is not a readable file. ${KNOWN_NAMES}`)
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

/** The format of a file name's ending; undefined for any other ending. */
export function formatNamed(name: string): Format | undefined {
  const found = FILE_NAME.exec(name)
  if (found === null) return undefined
  return found[1] ? 'parquet' : found[2] ? 'arrow' : found[3] ? 'csv' : 'ndjson'
}

/**
 * Checks the right to read before a file is opened; later a missing right would look like damage.
 * @throws DataError if the right is missing.
 */
export function requireReadable({ path, name }: RawFile): void {
  try {
    accessSync(path, constants.R_OK)
  } catch (error) {
    // A file that is gone by now is reported when it is opened.
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
