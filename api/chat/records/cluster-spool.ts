/**
 * The files of usage records that are still to be inserted into a cluster. They lie in folders and under names as
 * those of the drop folder, and their lines are the same.
 *
 * Several processes may share the folder. A process holds the files it wrote, and touches them so that the others see
 * that it lives; files that nobody touched for QUIET_MS are those of a dead process, and taken over. Taking over is a
 * change of name, which only one process succeeds in. Should the owner live after all, it does no harm: a writer
 * looks after each write whether the file is still in its place, and who finds a file gone leaves it to the other.
 */
import { readFile, readdir, rename, rmdir, stat, unlink, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { addDays, utcDay } from '../../../pipeline/contract/calendar.ts'
import type { Clock } from '../../http/call.ts'
import { codeOf } from '../../process/system-errors.ts'
import { dayFilesIn, newDayFileName, type FinishedFile } from './day-files.ts'
import { moveAside, QUIET_MS } from './torn-tails.ts'

export interface Spool {
  /** Takes files that this process has finished. */
  add(files: readonly FinishedFile[]): void
  /** Takes the files of dead processes, and removes folders of former days that have become empty. */
  takeOver(): Promise<void>
  /** Touches the files, so that no other process takes them over. */
  keepAlive(): Promise<void>
  /** Paths of the files held, in the order in which they are to be inserted. */
  files(): readonly string[]
  /** How many records these have. */
  records(): number
  /** The lines of a file, the last perhaps a torn one; undefined, and not held any more, where it is gone. */
  read(path: string): Promise<readonly string[] | undefined>
  /** Removes a file, but for lines that are no records: these are kept in one beside it. */
  remove(path: string, strays: readonly string[]): Promise<void>
  /** Puts a file behind all others. */
  postpone(path: string): void
}

/** The spool in `folder`. */
export function openSpool(folder: string, clock: Clock): Spool {
  /** Number of records by path. */
  const held = new Map<string, number>()

  async function takeOverFile(path: string): Promise<void> {
    const now = clock()
    if (now.getTime() - (await stat(path)).mtimeMs < QUIET_MS) return
    await utimes(path, now, now)
    const taken = join(dirname(path), newDayFileName(now))
    await rename(path, taken)
    held.set(taken, (await linesOf(taken)).length - 1)
  }

  return {
    add(files) {
      for (const { path, lines } of files) held.set(path, lines)
    },
    async takeOver() {
      for (const path of await dayFilesIn(folder)) {
        if (!held.has(path)) await unlessGone(takeOverFile(path))
      }
      await removeEmptyDays(folder, clock())
    },
    async keepAlive() {
      const now = clock()
      for (const path of held.keys()) {
        // One that is gone was taken over while this process stood still.
        await unlessGone(utimes(path, now, now), () => held.delete(path))
      }
    },
    files: () => [...held.keys()],
    records: () => [...held.values()].reduce((sum, records) => sum + records, 0),
    read: (path) => unlessGone(linesOf(path), () => held.delete(path)),
    async remove(path, strays) {
      if (strays.length > 0) await moveAside(path, strays.join('\n'))
      await unlessGone(unlink(path))
      held.delete(path)
    },
    postpone(path) {
      const records = held.get(path) ?? 0
      held.delete(path)
      held.set(path, records)
    },
  }
}

async function linesOf(path: string): Promise<string[]> {
  return (await readFile(path, 'utf8')).split('\n')
}

/** What `work` gives; undefined where its file is gone, which `gone` is told. */
async function unlessGone<T>(work: Promise<T>, gone?: () => void): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
    gone?.()
    return undefined
  }
}

/** Yesterday's folder stays: somebody may be about to make a file in it. */
async function removeEmptyDays(folder: string, now: Date): Promise<void> {
  const yesterday = `date=${addDays(utcDay(now), -1)}`
  const days = (await unlessGone(readdir(folder))) ?? []
  for (const day of days.filter((name) => name < yesterday)) {
    // It has files, or another process was quicker.
    await rmdir(join(folder, day)).catch(() => undefined)
  }
}
