/**
 * One file per UTC day, in folders `date=YYYY-MM-DD/`; only this process appends to it. Others may read at any time, so
 * a file always ends with a whole line: the rest of a failed write is truncated.
 */
import { randomBytes } from 'node:crypto'
import { stat } from 'node:fs'
import { mkdir, open, readdir, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Clock } from '../../http/call.ts'
import { codeOf } from '../../process/system-errors.ts'

/** Appends lines to the files of days. Only calls of `sync` may overlap. */
export interface DayFiles {
  /**
   * Hands the lines to the operating system in one write, at the end of the day's file. If that file was moved away, at
   * the end of a new one.
   * @throws if that failed; then no file has them.
   */
  append(day: string, lines: readonly string[]): Promise<void>
  /** Makes written lines survive a power cut. */
  sync(): Promise<void>
  /** Closes the open files, synced or not. */
  close(): Promise<void>
}

/** Names of these files: time of the process's first record, process id, random part. */
const DAY_FILE_NAME = /^chat-\d{8}T\d{6}Z-\d+-[\da-f]{8}\.ndjson$/

interface DayFile {
  readonly path: string
  readonly handle: FileHandle
  readonly inode: bigint
  /** Bytes in whole lines. */
  size: number
  dirty: boolean
}

// Yesterday and today; a request that began before midnight belongs to yesterday (CONTRACT 7).
const OPEN_DAYS = 2

const TRIES = 5

// Callbacks, since the promises of node:fs/promises are slower and this runs for every write.
const look = promisify(stat)

/** Day files below `usageFolder`; folders and files are created with their first line. */
export function createDayFiles(usageFolder: string, clock: Clock): DayFiles {
  const files = new Map<string, DayFile>()
  let name: string | undefined

  async function fileOf(day: string): Promise<DayFile> {
    const known = files.get(day)
    if (known !== undefined) return known
    await closeOldest(files, OPEN_DAYS - 1)
    name ??= newDayFileName(clock())
    const file = await openFile(join(usageFolder, `date=${day}`), name)
    files.set(day, file)
    return file
  }

  /** Appends; false if the day's file was moved away, since then the bytes may be lost. */
  async function tryToAppend(day: string, bytes: Buffer): Promise<boolean> {
    const file = await fileOf(day)
    try {
      await appendWhole(file, bytes)
      if (await isInPlace(file)) {
        file.size += bytes.length
        file.dirty = true
        return true
      }
    } catch (error) {
      files.delete(day)
      // No line may follow half a line, so a file that keeps one is not reused.
      if (!(await restore(file))) name = undefined
      throw error
    }
    files.delete(day)
    name = undefined
    await restore(file)
    return false
  }

  return {
    async append(day, lines) {
      const bytes = Buffer.from(lines.join(''))
      for (let tries = 1; tries <= TRIES; tries += 1) if (await tryToAppend(day, bytes)) return
      throw new Error(`The usage files of ${day} are moved away again and again`)
    },
    async sync() {
      await Promise.all([...files.values()].map(syncFile))
    },
    async close() {
      const opened = [...files.values()]
      files.clear()
      await Promise.all(opened.map(({ handle }) => handle.close().catch(() => undefined)))
    },
  }
}

function newDayFileName(now: Date): string {
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, '')
  return `chat-${time}-${process.pid}-${randomBytes(4).toString('hex')}.ndjson`
}

async function openFile(folder: string, name: string): Promise<DayFile> {
  const path = join(folder, name)
  const handle = await openInFolder(folder, path)
  try {
    const { ino, size } = await handle.stat({ bigint: true })
    return { path, handle, inode: ino, size: Number(size), dirty: false }
  } catch (error) {
    await handle.close()
    throw error
  }
}

// Another process may remove an empty day folder between the two steps, or within the first.
async function openInFolder(folder: string, path: string): Promise<FileHandle> {
  for (let tries = 1; ; tries += 1) {
    try {
      await mkdir(folder, { recursive: true })
      return await open(path, 'a')
    } catch (error) {
      if (tries === TRIES || codeOf(error) !== 'ENOENT') throw error
    }
  }
}

// Asynchronous on purpose: requests that end during a write share the next one.
async function appendWhole(file: DayFile, bytes: Buffer): Promise<void> {
  const { bytesWritten } = await file.handle.write(bytes)
  if (bytesWritten < bytes.length) {
    throw new Error(`Only ${bytesWritten} of ${bytes.length} bytes fitted into ${file.path}`)
  }
}

/** A removed or moved file still accepts writes, but nobody would find them. */
async function isInPlace({ path, inode }: DayFile): Promise<boolean> {
  try {
    return (await look(path, { bigint: true })).ino === inode
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}

/** Truncates what a failed write left, and closes the file; false if that failed. */
async function restore(file: DayFile): Promise<boolean> {
  try {
    await file.handle.truncate(file.size)
    return true
  } catch {
    return false
  } finally {
    // Earlier lines are synced, or as safe as the failing disk allows.
    await file.handle.close().catch(() => undefined)
  }
}

async function syncFile(file: DayFile): Promise<void> {
  if (!file.dirty) return
  file.dirty = false
  await file.handle.datasync()
}

async function closeOldest(files: Map<string, DayFile>, keep: number): Promise<void> {
  const superfluous = [...files.keys()].toSorted().slice(0, Math.max(0, files.size - keep))
  for (const day of superfluous) {
    const file = files.get(day)
    files.delete(day)
    if (file !== undefined) await closeFile(file)
  }
}

async function closeFile(file: DayFile): Promise<void> {
  try {
    await syncFile(file)
  } finally {
    await file.handle.close()
  }
}

/** The paths of all files in the folders of days below `usageFolder`, oldest day first. */
export async function dayFilesIn(usageFolder: string): Promise<string[]> {
  const paths: string[] = []
  for (const day of await namesIn(usageFolder)) {
    const folder = join(usageFolder, day)
    for (const name of await namesIn(folder)) if (DAY_FILE_NAME.test(name)) paths.push(join(folder, name))
  }
  return paths
}

/** The names in a folder; empty if the folder does not exist or is a file. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).toSorted()
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw error
  }
}
