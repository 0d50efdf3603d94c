/** The drop folder, DATA_DIR/raw: lists its files by day and format (CONTRACT 7). */
import { createHash } from 'node:crypto'
import { createReadStream, readdirSync, statSync, type Dirent } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { daySchema } from '../contract/calendar.ts'
import { DataError, messageOf } from '../errors.ts'

export type Format = 'parquet' | 'ndjson' | 'csv' | 'arrow'

export type RawFile = {
  /** Absolute path. */
  readonly path: string
  /** Path below raw/, for reports and the quarantine. */
  readonly name: string
  readonly format: Format
  readonly compression: 'none' | 'gz' | 'zst'
  readonly bytes: number
  /**
   * Identifies the file's content: size in bytes, modification time and change time in nanoseconds. `cp -p` and `rsync -t`
   * can replace a file by one of the same size and modification time, but nothing can set the change time. It also changes
   * with the file's rights; counting a day again for nothing is cheap, missing a correction is not.
   */
  readonly version: string
}

/** A UTC day of raw usage. */
export type UsageDay = {
  /** `YYYY-MM-DD` */
  readonly day: string
  readonly files: readonly RawFile[]
  /** Equal as long as no file of the day is added, removed or changed. */
  readonly fingerprint: string
}

/** The file of a day that was pulled from a cluster. */
export const PULLED_FILE = 'cluster.parquet'

const DAY_FOLDER = /^date=(\d{4}-\d{2}-\d{2})$/
const FILE_NAME = /\.(?:(parquet|arrow)|(csv|ndjson|jsonl|json)(?:\.(gz|zst))?)$/
const KNOWN_NAMES = 'Expected .parquet, .arrow, .ndjson or .csv (the latter two also .gz or .zst)'

/** Whether a name is that of an unfinished or foreign file. DuckDB puts `tmp_` before that of a file that it is writing. */
export function isSkipped(name: string): boolean {
  return /^(?:[._]|tmp_\.)/.test(name)
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
      const isDay = day !== undefined && daySchema.safeParse(day).success
      // It may be a link to a folder.
      const path = join(entry.parentPath, entry.name)
      if (!isDay || statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) {
        throw new DataError(
          `usage/${entry.name} is not a day: expected a folder date=YYYY-MM-DD. Move it away or rename it; ` +
            'npm run nightly -- import FILE sorts the rows of a file into the folders of their days',
        )
      }
      const files = listFiles(rawFolder, join('usage', entry.name))
      return { day, files, fingerprint: files.map(({ name, version }) => `${name} ${version}`).join('\n') }
    })
    .filter(({ files }) => files.length > 0)
}

/**
 * The files of a folder below raw/, by name; none when it does not exist.
 * @throws DataError with a file of unknown ending, or that is none.
 */
export function listFiles(rawFolder: string, folder: string): RawFile[] {
  return entries(join(rawFolder, folder)).map((entry) => {
    const name = join(folder, entry.name)
    const path = join(rawFolder, name)
    const facts = statFile(path, name)
    const kind = kindNamed(name)
    if (kind === undefined) throw new DataError(`${name} is not a readable file. ${KNOWN_NAMES}`)
    return { path, name, ...kind, ...facts }
  })
}

/** The format and compression of a file name's ending; undefined for any other ending. */
function kindNamed(name: string): Pick<RawFile, 'format' | 'compression'> | undefined {
  const [, binary, text, packed] = FILE_NAME.exec(name.toLowerCase()) ?? []
  const ending = binary ?? text
  if (ending === undefined) return undefined
  const format = ending === 'parquet' || ending === 'arrow' || ending === 'csv' ? ending : 'ndjson'
  return { format, compression: packed === 'gz' || packed === 'zst' ? packed : 'none' }
}

/** @throws DataError if there is no such file. */
export function statFile(path: string, name: string): Pick<RawFile, 'bytes' | 'version'> {
  const facts = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (facts === undefined) throw new DataError(`${name} does not exist`)
  if (!facts.isFile()) throw new DataError(`${name} is not a readable file. ${KNOWN_NAMES}`)
  return { bytes: Number(facts.size), version: `${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}` }
}

/**
 * A copy would count every row twice.
 * @param files of one day.
 * @throws DataError with two files of the same bytes.
 */
export async function refuseCopies(files: readonly RawFile[]): Promise<void> {
  const ofSize = Map.groupBy(files, ({ bytes }) => bytes)
  const names = new Map<string, string>()
  for (const { path, name, bytes } of files) {
    if (bytes === 0 || ofSize.get(bytes)?.length === 1) continue
    const hash = createHash('sha256')
    await pipeline(createReadStream(path, { end: bytes - 1 }), hash)
    const digest = hash.digest('hex')
    const other = names.get(digest)
    if (other !== undefined) {
      throw new DataError(
        `${other} and ${name} hold the same bytes, so that every row would count twice. Remove one of them`,
      )
    }
    names.set(digest, name)
  }
}

function entries(folder: string): Dirent[] {
  try {
    // Unlike existsSync, this fails for a folder without the right to look into it.
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) return []
    return readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => !isSkipped(name))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    throw new DataError(`Cannot read the folder ${folder}: ${messageOf(error)}`, { cause: error })
  }
}
