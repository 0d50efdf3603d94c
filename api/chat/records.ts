/**
 * Writes usage records into the drop folder, one JSON line each (CONTRACT 6, 7). `write` resolves once the operating
 * system has the record, so the death of this process loses no acknowledged record. Files are synced once a second, so a
 * power cut loses at most about the last second. A record that cannot be written goes to the log at once, and waits in
 * memory for another try.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, ftruncateSync, mkdirSync, openSync, write } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Log } from '../process/log.ts'
import { codeOf, unlessAbsent } from '../process/system-errors.ts'

/** A usage record, whose hour (ISO 8601 UTC) decides its file. */
type TimedRecord = { readonly ts: string }

/** The log line with a record that could not be written; `usage_record` holds it. */
const NOT_WRITTEN = 'a usage record could not be written to its file'

/** How often waiting records are tried again, and written ones synced. */
const EVERY_MS = 1000
/** How long a request waits for the log. */
const LOG_MS = 1000
/** Maximum bytes of records that wait in memory; the log has those beyond. */
const WAITING_BYTES = 64 * 1024 * 1024

const writeTo = promisify(write)
const makeSuffix = () => `${process.pid}-${randomBytes(4).toString('hex')}`
/** Without creating the file. */
const APPEND = constants.O_WRONLY | constants.O_APPEND

/**
 * The writer. Each hour of a day has its file, `date=YYYY-MM-DD/chat-….ndjson`; only this process appends to it. Others
 * may read, move or remove it at any time; it ends with a whole line, unless the process dies within a write.
 */
export class UsageRecords {
  readonly #folder: string
  readonly #log: Log
  /** In the names of files: differs for each process, and after a file was moved away or could not be written. */
  #suffix = makeSuffix()
  /** Path of the file of the last write. */
  #last: string | undefined
  /** Files with lines that a power cut would lose. */
  readonly #unsynced = new Set<string>()
  /** Records of the next write: those that arrive during a write share it. */
  readonly #next: TimedRecord[] = []
  /** The writes so far, each after the one before. */
  #writes = Promise.resolve()
  #waiting: readonly TimedRecord[] = []
  readonly #timer: NodeJS.Timeout

  constructor(dataDir: string, log: Log) {
    this.#folder = join(dataDir, 'raw', 'usage')
    this.#log = log
    this.#timer = setInterval(() => {
      void this.#enqueue(() => this.#writeWaiting())
      void this.#sync()
    }, EVERY_MS).unref()
  }

  /** Resolves once the record is written, or is in the log and waits for another try. Never rejects. */
  async write(record: TimedRecord): Promise<void> {
    if (this.#next.length === 0) void this.#enqueue(() => this.#writeNext())
    this.#next.push(record)
    await this.#writes
  }

  /** Writes after all earlier writes; `work` never rejects. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#writes = this.#writes.then(work)
    return this.#writes
  }

  /** Number of records that wait. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Tries once more to write what waits, and makes it survive a power cut. No record may follow. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#enqueue(() => this.#writeWaiting())
    await this.#sync()
  }

  async #writeNext(): Promise<void> {
    const failed = await this.#append(this.#next.splice(0))
    if (failed.length > 0) await this.#keep(failed)
  }

  /** Hands the records to the log at once, and lets them wait for another try. */
  async #keep(records: readonly TimedRecord[]): Promise<void> {
    for (const record of records) this.#log.error({ usage_record: record }, NOT_WRITTEN)
    let bytes = 0
    const fits = (record: TimedRecord) => (bytes += JSON.stringify(record).length) <= WAITING_BYTES
    this.#waiting = [...this.#waiting, ...records].filter(fits)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#log.flush(() => resolve())
    // The log may fail as well.
    await Promise.race([promise, sleep(LOG_MS, undefined, { ref: false })])
  }

  async #writeWaiting(): Promise<void> {
    if (this.#waiting.length === 0) return
    this.#waiting = await this.#append(this.#waiting)
    if (this.#waiting.length === 0) this.#log.info('usage records are written again')
  }

  /** Makes written lines survive a power cut. */
  async #sync(): Promise<void> {
    // Writes during the sync wait for the next one.
    const paths = [...this.#unsynced]
    this.#unsynced.clear()
    for (const path of paths) {
      try {
        await using file = await open(path)
        await file.datasync()
      } catch (error) {
        if (codeOf(error) === 'ENOENT') continue
        this.#log.error({ err: error }, 'usage records may not survive a power cut')
      }
    }
  }

  /** Appends records, those of the hour of their arrival in one write; returns those that could not be written. */
  async #append(records: readonly TimedRecord[]): Promise<readonly TimedRecord[]> {
    const failed: TimedRecord[] = []
    for (const [hour, own] of Map.groupBy(records, ({ ts }) => ts.slice(0, 13))) {
      try {
        await this.#appendTo(hour, own.map((record) => `${JSON.stringify(record)}\n`).join(''))
      } catch (error) {
        const isFirst = this.#waiting.length === 0
        if (isFirst) this.#log.error({ err: error }, 'usage records cannot be written; trying again')
        failed.push(...own)
      }
    }
    return failed
  }

  /**
   * Hands the lines to the operating system at the end of the hour's file.
   * @param hour `YYYY-MM-DDTHH`.
   * @throws if that failed; then no file has them.
   */
  async #appendTo(hour: string, lines: string): Promise<void> {
    const { path, file, size } = this.#openFile(hour)
    const bytes = Buffer.from(lines)
    try {
      // Asynchronous on purpose: requests that end during a write share the next one.
      const { bytesWritten } = await writeTo(file, bytes)
      if (bytesWritten < bytes.length) throw new Error(`${bytesWritten} of ${bytes.length} bytes fitted`)
      this.#unsynced.add(path)
    } catch (error) {
      // No line may follow half a line.
      this.#suffix = makeSuffix()
      ftruncateSync(file, size)
      throw error
    } finally {
      closeSync(file)
    }
  }

  /** Opens the file of an hour for appending: one of another name if that of the last write was moved away. */
  #openFile(hour: string): { readonly path: string; readonly file: number; readonly size: number } {
    const folder = join(this.#folder, `date=${hour.slice(0, 10)}`)
    const path = join(folder, `chat-${hour.replaceAll('-', '')}Z-${this.#suffix}.ndjson`)
    const isNew = this.#last !== path
    if (isNew) mkdirSync(folder, { recursive: true })
    const file = unlessAbsent(() => openSync(path, isNew ? 'a' : APPEND))
    if (file === undefined) {
      this.#suffix = makeSuffix()
      return this.#openFile(hour)
    }
    this.#last = path
    return { path, file, size: fstatSync(file).size }
  }
}
