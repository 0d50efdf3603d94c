/**
 * Writes usage records into the files of days, one JSON line each (CONTRACT 6, 7). `record` resolves once the operating
 * system has the record, so the death of this process loses no acknowledged record. Files are synced once a second, so
 * a power cut loses at most about the last second. Failed writes wait in memory and are retried. Records beyond the
 * memory limit, and the rest at the end, are written to the log.
 */
import type { Clock } from '../../http/call.ts'
import { createSerialQueue, type SerialQueue } from '../../process/serial-queue.ts'
import type { Log } from '../../process/log.ts'
import { createDayFiles, type DayFiles } from './day-files.ts'
import type { RecordUsage, UsageRecord } from './usage-record.ts'
import { createWaitingRecords, type WaitingRecords } from './waiting-records.ts'

export interface RecordWriter {
  readonly record: RecordUsage
  /** Number of records that are not yet written. */
  waiting(): number
  /** Writes waiting records as far as possible, and closes the files. No record may follow. */
  close(): Promise<void>
}

/** Limits of the writer; WRITER_LIMITS are the defaults. */
export interface WriterLimits {
  /** Pause before a retry, in milliseconds. */
  readonly retryMs: number
  /** Time between two syncs to disk, in milliseconds. */
  readonly syncMs: number
  /** Maximum bytes of records that wait in memory. */
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

/** Records of one write per day; `written` never rejects. */
interface Batch {
  readonly lines: Line[]
  readonly written: Promise<void>
}

/** A writer over the day folders below `folder`; it creates nothing before the first record. */
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
  /** Resolves once the line is written, or waits after a failed write. */
  write(line: Line): Promise<void>
  /** Starts to write waiting lines. */
  tryAgain(): void
}

/** Writes one batch at a time; lines that arrive during a write form the next batch. */
function createBatches(files: DayFiles, waiting: WaitingRecords, enqueue: SerialQueue): Batches {
  let next: Batch | undefined

  async function writeNew(days: ReadonlyMap<string, readonly string[]>): Promise<void> {
    for (const [day, lines] of days) {
      await files.append(day, lines).catch((error: unknown) => waiting.failed(day, lines, error))
    }
  }

  async function writeWaiting(): Promise<void> {
    for (const [day, lines] of waiting.list()) {
      // The start of the failure was logged.
      await files.append(day, lines).then(
        () => waiting.succeeded(day, lines.length),
        () => undefined,
      )
    }
  }

  function startBatch(): Batch {
    const lines: Line[] = []
    const written = enqueue(async () => {
      // Later lines wait for the next write.
      next = undefined
      await writeNew(byDay(lines))
    })
    return { lines, written }
  }

  return {
    async write(line) {
      // No caller waits while writes of the day fail: the line is retried with the others.
      if (waiting.isFailing(line.day)) return waiting.add(line.day, [line.text])
      next ??= startBatch()
      next.lines.push(line)
      await next.written
    },
    tryAgain: () => void enqueue(writeWaiting),
  }
}

/** Logs an error unless it equals the previous one. */
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
