/**
 * Writes usage records into the drop folder, one JSON line each, for the next night to count (CONTRACT 6, 7).
 *
 * What may be lost: a record is handed to the operating system before `record` resolves, so the death of this
 * process loses nothing that was acknowledged; a power cut loses at most about the last second, since files are
 * synced once a second. What cannot be written is kept in memory and tried again; what memory cannot hold, and
 * what is left at the end, goes into the log as it is.
 */
import { join } from 'node:path'
import type { Clock } from '../call.ts'
import type { Log } from '../log.ts'
import { createDayFiles, type DayFiles } from './day-files.ts'
import { QUIET_MS, sealTornTails } from './torn-tails.ts'
import type { RecordUsage, UsageRecord } from './usage-record.ts'
import { createWaitingRecords, type WaitingRecords } from './waiting-records.ts'

export interface UsageLog {
  readonly record: RecordUsage
  /** How many records could not be written yet. */
  waiting(): number
  /** Writes what waits, as far as that is possible; no record may come after. */
  close(): Promise<void>
}

/** What the writer may use; the limits in force are USAGE_LOG_LIMITS. */
interface UsageLogLimits {
  /** Pause before what failed is tried again, in milliseconds. */
  readonly retryMs: number
  /** Time between two syncs to disk, in milliseconds. */
  readonly syncMs: number
  /** Bytes of records that may wait in memory while they cannot be written. */
  readonly waitingBytes: number
}

export const USAGE_LOG_LIMITS: UsageLogLimits = {
  retryMs: 1000,
  syncMs: 1000,
  waitingBytes: 64 * 1024 * 1024,
}

interface UsageLogOptions {
  readonly log: Log
  readonly clock: Clock
  readonly limits?: UsageLogLimits
}

interface Line {
  readonly day: string
  readonly text: string
}

/** Records that go out in one write per day; `written` never rejects. */
interface Batch {
  readonly lines: Line[]
  readonly written: Promise<void>
}

/** Opens the writer over `dataDir` and seals what dead processes left half written. Never fails. */
export async function openUsageLog(
  dataDir: string,
  { log, clock, limits = USAGE_LOG_LIMITS }: UsageLogOptions,
): Promise<UsageLog> {
  const folder = join(dataDir, 'raw', 'usage')
  const sealing = await startSealing(folder, clock, log)
  const files = createDayFiles(folder, clock)
  const waiting = createWaitingRecords(log, limits.waitingBytes)
  const writer = createWriter(files, waiting)
  const tellSyncFault = createOnceTeller(log)
  const timers = [
    setInterval(() => writer.tryAgain(), limits.retryMs).unref(),
    setInterval(() => void files.sync().catch(tellSyncFault), limits.syncMs).unref(),
  ]
  return {
    record: (record) => writer.write(lineOf(record)),
    waiting: () => waiting.count(),
    async close() {
      sealing.stop()
      timers.forEach(clearInterval)
      writer.tryAgain()
      await writer.settled()
      waiting.tellAll()
      await files.close().catch(tellSyncFault)
    },
  }
}

interface Writer {
  /** Resolves once the line was written, or could not be and waits. */
  write(line: Line): Promise<void>
  /** Begins to write what waits. */
  tryAgain(): void
  /** Resolves when everything that was begun is done. */
  settled(): Promise<void>
}

/** Writes one batch at a time: while one is under way, all lines that come gather in the next. */
function createWriter(files: DayFiles, waiting: WaitingRecords): Writer {
  let last: Promise<void> = Promise.resolve()
  let next: Batch | undefined

  async function writeNew(days: ReadonlyMap<string, readonly string[]>): Promise<void> {
    for (const [day, lines] of days) {
      await files.append(day, lines.join('')).catch((error: unknown) => waiting.failed(day, lines, error))
    }
  }

  async function writeWaiting(): Promise<void> {
    for (const [day, lines] of waiting.list()) {
      // That it failed was told when it began to.
      await files.append(day, lines.join('')).then(
        () => waiting.succeeded(day, lines.length),
        () => undefined,
      )
    }
  }

  function startBatch(): Batch {
    const lines: Line[] = []
    last = last.then(() => {
      // Whoever comes from here on waits for the next write.
      next = undefined
      return writeNew(byDay(lines))
    })
    return { lines, written: last }
  }

  return {
    async write(line) {
      // Nobody is to wait where others of the day could not be written: this one will be tried with them.
      if (waiting.isFailing(line.day)) return waiting.add(line.day, [line.text])
      next ??= startBatch()
      next.lines.push(line)
      await next.written
    },
    tryAgain() {
      last = last.then(writeWaiting)
    },
    settled: () => last,
  }
}

/** Seals at once and, while there are half lines too young for that, again later. */
async function startSealing(folder: string, clock: Clock, log: Log): Promise<{ stop(): void }> {
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    try {
      const left = await sealTornTails(folder, clock(), log)
      if (!left) clearInterval(timer)
      else timer ??= setInterval(() => void look(), QUIET_MS).unref()
    } catch (error) {
      log.error({ err: error }, 'usage files of former processes cannot be looked over')
    }
  }

  await look()
  return { stop: () => clearInterval(timer) }
}

/** Tells a fault in the log, unless it is the same as the one before. */
function createOnceTeller(log: Log): (error: unknown) => void {
  let told: string | undefined
  return (error) => {
    if (String(error) !== told) log.error({ err: error }, 'usage records may not survive a power cut')
    told = String(error)
  }
}

function lineOf(record: UsageRecord): Line {
  return { day: record.ts.slice(0, 10), text: `${JSON.stringify(record)}\n` }
}

function byDay(lines: readonly Line[]): Map<string, string[]> {
  const days = new Map<string, string[]>()
  for (const { day, text } of lines) {
    const texts = days.get(day)
    if (texts === undefined) days.set(day, [text])
    else texts.push(text)
  }
  return days
}
