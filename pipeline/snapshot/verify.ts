/** Measures files, and verifies published ones, by size and SHA-256. */
import { createHash } from 'node:crypto'
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SNAPSHOTS_FOLDER, SNAPSHOT_FILE } from '../contract/files.ts'
import { recordPath, sizeFault, type PublishedFile } from '../contract/snapshot-record.ts'
import { recordOf } from './records.ts'

const READ_AT_ONCE = 1 << 20

/** The size and the SHA-256 of a file in `folder`. It is read synchronously: a stream takes twice as long. */
export function measureFile(folder: string, name: string): PublishedFile {
  using files = new DisposableStack()
  const file = files.adopt(openSync(join(folder, name), 'r'), closeSync)
  const hash = createHash('sha256')
  const piece = Buffer.alloc(READ_AT_ONCE)
  let bytes = 0
  for (let length = readSync(file, piece); length > 0; length = readSync(file, piece)) {
    hash.update(piece.subarray(0, length))
    bytes += length
  }
  return { name, bytes, sha256: hash.digest('hex') }
}

/** The SHA-256 of a file in a folder. */
type Measure = (folder: string, name: string) => string

/** Reads a file that several snapshots share only once. */
export function measureOnce(): Measure {
  const known = new Map<string, string>()
  return (folder, name) => {
    const { dev, ino } = statSync(join(folder, name))
    return known.getOrInsertComputed(`${dev} ${ino}`, () => measureFile(folder, name).sha256)
  }
}

/** The damaged or missing files of a snapshot: path in DATA_DIR and fault, as one text each. */
export function brokenFiles(dataDir: string, id: string, measure: Measure): string[] {
  const folder = join(SNAPSHOTS_FOLDER, id)
  const record = recordOf(dataDir, id)
  if (record === undefined) return [`${recordPath(SNAPSHOTS_FOLDER, id)} cannot be read`]
  return record.files.flatMap((file) => {
    const fault = faultOf(join(dataDir, folder), file, measure)
    return fault === undefined ? [] : [`${join(folder, file.name)} ${fault}`]
  })
}

/** The fault of a published file, as words after its name; undefined if it is intact. */
function faultOf(folder: string, file: PublishedFile, measure: Measure): string | undefined {
  if (file.name === SNAPSHOT_FILE && existsSync(join(folder, `${SNAPSHOT_FILE}.wal`))) {
    return `was opened for writing after it was published; remove ${SNAPSHOT_FILE}.wal, which holds the changes`
  }
  const fault = sizeFault(folder, file)
  if (fault !== undefined) return fault
  try {
    return measure(folder, file.name) === file.sha256 ? undefined : 'has other bytes than were published'
  } catch {
    return 'cannot be read'
  }
}

/** Whether the DuckDB file of a snapshot is unchanged since it was published. */
export function isWhole(dataDir: string, id: string): boolean {
  const file = recordOf(dataDir, id)?.files.find(({ name }) => name === SNAPSHOT_FILE)
  const folder = join(dataDir, SNAPSHOTS_FOLDER, id)
  return file !== undefined && faultOf(folder, file, measureOnce()) === undefined
}
