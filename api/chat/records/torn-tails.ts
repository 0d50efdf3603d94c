/**
 * A process that dies in the middle of a write may leave half a line at the end of its file. Nobody appends to
 * that file any more, and nobody was told that the record is kept, so the half line is moved aside, into a file
 * that the pipeline passes over.
 */
import { open, writeFile, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Log } from '../../process/log.ts'
import { codeOf } from '../../process/system-errors.ts'
import { dayFilesIn } from './day-files.ts'

/**
 * A file that was not touched for so long is not being written: a line goes out in one write, and what a failed
 * one leaves is taken off at once. This holds for processes of any host and container.
 */
export const QUIET_MS = 60_000

const NEWLINE = 0x0a
const CHUNK_BYTES = 65_536

/** Prefix of the files that keep half lines; the pipeline passes over names that begin with `_`. */
const ASIDE_PREFIX = '_torn-'

/**
 * Seals the usage files of dead processes below `usageFolder`.
 * @returns whether half lines are left that are too young to be judged.
 */
export async function sealTornTails(usageFolder: string, now: Date, log: Log): Promise<boolean> {
  let left = false
  for (const file of await dayFilesIn(usageFolder)) {
    const outcome = await seal(file, now).catch((error: unknown) => {
      // One that was moved away meanwhile is somebody else's. Any other must not keep the rest from being sealed.
      if (codeOf(error) !== 'ENOENT') log.error({ file, err: error }, 'a usage file cannot be looked over')
      return 'unread' as const
    })
    if (outcome === 'young') left = true
    if (outcome === 'sealed') log.warn({ file }, 'half a usage record moved aside')
  }
  return left
}

async function seal(path: string, now: Date): Promise<'whole' | 'young' | 'sealed'> {
  // Most files are whole, and it is no fault that old ones may only be read.
  await using reader = await open(path)
  const { size, mtime } = await reader.stat()
  const whole = await endOfLastLine(reader, size)
  if (whole === size) return 'whole'
  if (now.getTime() - mtime.getTime() < QUIET_MS) return 'young'
  await using handle = await open(path, 'r+')
  const tail = Buffer.alloc(size - whole)
  await handle.read(tail, 0, tail.length, whole)
  await moveAside(path, tail)
  if ((await handle.stat()).size !== size) return 'young'
  await handle.truncate(whole)
  return 'sealed'
}

/** Keeps what is no record of the file at `path` in a file beside it. */
async function moveAside(path: string, what: Buffer): Promise<void> {
  const aside = join(dirname(path), `${ASIDE_PREFIX}${basename(path)}`)
  await writeFile(aside, what, { flag: 'a', flush: true })
}

/** Where the last whole line ends, in bytes: behind its newline. */
async function endOfLastLine(handle: FileHandle, size: number): Promise<number> {
  // Nearly every file ends with a newline, which one byte tells.
  let length = Math.min(1, size)
  for (let end = size; end > 0; end -= length, length = Math.min(CHUNK_BYTES, end)) {
    const chunk = Buffer.alloc(length)
    await handle.read(chunk, 0, length, end - length)
    const newline = chunk.lastIndexOf(NEWLINE)
    if (newline !== -1) return end - length + newline + 1
  }
  return 0
}
