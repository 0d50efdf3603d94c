/**
 * Writes usage records into files of days, one JSON line each (CONTRACT 6, 7).
 *
 * What may be lost: a record is handed to the operating system before `record` resolves, so the death of this
 * process loses nothing that was acknowledged; a power cut loses at most about the last second, since files are
 * synced once a second. What cannot be written is kept in memory and tried again; what memory cannot hold, and
 * what is left at the end, goes into the log as it is.
 */
import type { Clock } from '../../http/call.ts'
import { createSerialQueue, type SerialQueue } from '../../process/serial-queue.ts'
import type { Log } from '../../process/log.ts'
import { createDayFiles, type DayFiles } from './day-files.ts'
import type { RecordUsage, UsageRecord } from './usage-record.ts'
import { createWaitingRecords, type WaitingRecords } from './waiting-records.ts'

export interface RecordWriter {
  readonly record: RecordUsage
  /** How many records could not be written yet. */
  waiting(): number
  /** Writes what waits, as far as that is possible, and closes the files; no record may come after. */
  close(): Promise<void>
}

/** What the writer may use; the limits in force are WRITER_LIMITS. */
export interface WriterLimits {
  /** Pause before what failed is tried again, in milliseconds. */
  readonly retryMs: number
  /** Time between two syncs to disk, in milliseconds. */
  readonly syncMs: number
  /** Bytes of records that may wait in memory while they cannot be written. */
  readonly waitingBytes: number
}

export const WRITER_LIMITS: WriterLimits = {
  retryMs: 1000,
  syncMs: 1000,
  waitingBytes: 64 * 1024 * 1024,
}

interface WriterOptions {
  readonly log: Log
  readonly clock: Clock
  readonly limits: WriterLimits
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

/** A writer over the folders of days below `folder`; nothing is touched before the first record. */
export function createRecordWriter(folder: string, { log, clock, limits }: WriterOptions): RecordWriter {
  const files = createDayFiles(folder, clock)
  const waiting = createWaitingRecords(log, limits.waitingBytes)
  const enqueue = createSerialQueue()
  const batches = createBatches(files, waiting, enqueue)
  const reportSyncFault = createOnceReporter(log)
  const timers = [
    setInterval(() => batches.tryAgain(), limits.retryMs).unref(),
    setInterval(() => void files.sync().catch(reportSyncFault), limits.syncMs).unref(),
  ]

  return {
    record: (record) => batches.write(lineOf(record)),
    waiting: () => waiting.count(),
    async close() {
      timers.forEach(clearInterval)
      batches.tryAgain()
      await enqueue(async () => {
        await files.sync().catch(reportSyncFault)
        await files.close()
      })
      waiting.reportAll()
    },
  }
}

interface Batches {
  /** Resolves once the line was written, or could not be and waits. */
  write(line: Line): Promise<void>
  /** Begins to write what waits. */
  tryAgain(): void
}

/** Writes one batch at a time: while one is under way, all lines that come gather in the next. */
function createBatches(files: DayFiles, waiting: WaitingRecords, enqueue: SerialQueue): Batches {
  let next: Batch | undefined

  async function writeNew(days: ReadonlyMap<string, readonly string[]>): Promise<void> {
    for (const [day, lines] of days) {
      await files.append(day, lines).catch((error: unknown) => waiting.failed(day, lines, error))
    }
  }

  async function writeWaiting(): Promise<void> {
    for (const [day, lines] of waiting.list()) {
      // That it failed was logged when it began to.
      await files.append(day, lines).then(
        () => waiting.succeeded(day, lines.length),
        () => undefined,
      )
    }
  }

  function startBatch(): Batch {
    const lines: Line[] = []
    const written = enqueue(async () => {
      // Whoever comes from here on waits for the next write.
      next = undefined
      await writeNew(byDay(lines))
    })
    return { lines, written }
  }

  return {
    async write(line) {
      // Nobody is to wait where others of the day could not be written: this one will be tried with them.
      if (waiting.isFailing(line.day)) return waiting.add(line.day, [line.text])
      next ??= startBatch()
      next.lines.push(line)
      await next.written
    },
    tryAgain: () => void enqueue(writeWaiting),
  }
}

/** Tells a fault in the log, unless it is the same as the one before. */
function createOnceReporter(log: Log): (error: unknown) => void {
  let logged: string | undefined
  return (error) => {
    if (String(error) !== logged) log.error({ err: error }, 'usage records may not survive a power cut')
    logged = String(error)
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
