/**
 * A process that dies during a write may leave half a line at the end of its file. Nobody appends to that file again,
 * and the record was never acknowledged. So the half line is moved into a file that the pipeline skips.
 */
import { open, writeFile, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Log } from '../../process/log.ts'
import { codeOf } from '../../process/system-errors.ts'
import { dayFilesIn } from './day-files.ts'

/**
 * A file untouched for this long is not being written: a line is one write, and the rest of a failed write is truncated
 * at once. This holds for processes on any host and in any container.
 */
export const QUIET_MS = 60_000

const NEWLINE = 0x0a
const CHUNK_BYTES = 65_536

/** Prefix of the files with half lines; the pipeline skips names that begin with `_`. */
const ASIDE_PREFIX = '_torn-'

/**
 * Moves half lines out of the usage files of dead processes below `usageFolder`.
 * @returns whether half lines remain that are too recent to judge.
 */
export async function sealTornTails(usageFolder: string, now: Date, log: Log): Promise<boolean> {
  let left = false
  for (const file of await dayFilesIn(usageFolder)) {
    const outcome = await seal(file, now).catch((error: unknown) => {
      // A missing file was moved away by another process. Any other error must not stop the loop.
      if (codeOf(error) !== 'ENOENT') log.error({ file, err: error }, 'a usage file cannot be checked')
      return 'unread' as const
    })
    if (outcome === 'young') left = true
    if (outcome === 'sealed') log.warn({ file }, 'half a usage record moved aside')
  }
  return left
}

async function seal(path: string, now: Date): Promise<'whole' | 'young' | 'sealed'> {
  // Most files are whole, and old ones may be read-only.
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

/** Moves half a record out of the file at `path`. */
async function moveAside(path: string, what: Buffer): Promise<void> {
  const aside = join(dirname(path), `${ASIDE_PREFIX}${basename(path)}`)
  await writeFile(aside, what, { flag: 'a', flush: true })
}

/** The position after the newline of the last whole line, in bytes. */
async function endOfLastLine(handle: FileHandle, size: number): Promise<number> {
  // Nearly every file ends with a newline, which one byte shows.
  let length = Math.min(1, size)
  for (let end = size; end > 0; end -= length, length = Math.min(CHUNK_BYTES, end)) {
    const chunk = Buffer.alloc(length)
    await handle.read(chunk, 0, length, end - length)
    const newline = chunk.lastIndexOf(NEWLINE)
    if (newline !== -1) return end - length + newline + 1
  }
  return 0
}
