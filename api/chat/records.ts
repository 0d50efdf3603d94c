/**
 * Writes usage records into the drop folder, one JSON line each (CONTRACT 6, 7). `write` resolves once the operating
 * system has the record, so the death of this process loses no acknowledged record. Files are synced once a second, so a
 * power cut loses at most about the last second. A record that cannot be written goes to the log at once, and waits in
 * memory for another try.
 */
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { mkdir, open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { createSerialQueue } from '../process/serial-queue.ts'
import type { Log } from '../process/log.ts'

/** One attempt at a provider. */
export interface AttemptRecord {
  /** Model as the caller named it, `author/slug`. */
  readonly model: string
  readonly provider: string
  /** HTTP status of the provider; null without a reply. */
  readonly status: number | null
  /** Why the attempt did not serve the request; null if it did. */
  readonly error_type: string | null
  readonly duration_ms: number
}

/** One chat request, as the nightly run reads it (CONTRACT 7) and operators do. */
export interface UsageRecord {
  /** When the request arrived, ISO 8601 UTC with milliseconds. */
  readonly ts: string
  /** Unique over all processes: the pipeline finds duplicates by it. */
  readonly request_id: string
  /** UNATTRIBUTED_APP_ID (pipeline/contract/dataset.ts) if the request names no app; otherwise absent. */
  readonly app_id?: number
  /** The address or name of the app, its title, and its categories with commas, as sent; absent without an app. */
  readonly app?: string
  readonly app_title?: string | null
  readonly app_categories?: string | null
  /** Tokens as counted by the serving provider; both null if it reported none. */
  readonly prompt_tokens: number | null
  readonly completion_tokens: number | null
  /** Parts of the two counts: reasoning, and read from a cache; null if the provider reported none. */
  readonly reasoning_tokens: number | null
  readonly cached_tokens: number | null
  /** 1 if a provider served the request, whole or in part; otherwise 0, so that failures do not count in the rankings. */
  readonly requests: 0 | 1
  /** Model and provider that served; null if none did. */
  readonly model: string | null
  readonly provider: string | null
  readonly account_id: string
  readonly stream: boolean
  /** HTTP status sent to the caller. */
  readonly status: number
  /** The end: whole, cut by the provider after the first token, left by the client, or never served. */
  readonly outcome: 'completed' | 'cut' | 'left' | 'failed'
  /** Why the tokens are null. */
  readonly usage_missing: string | null
  /** From arrival to the first meaningful token and to the end, in milliseconds. */
  readonly first_token_ms: number | null
  readonly duration_ms: number
  readonly attempts: readonly AttemptRecord[]
}

/** The log line with a record that could not be written; `usage_record` holds it. */
export const NOT_WRITTEN = 'a usage record could not be written to its file'

const RETRY_MS = 1000
const SYNC_MS = 1000
/** How long a request waits for the log. */
const LOG_MS = 1000
/** Maximum bytes of records that wait in memory; the log has those beyond. */
const WAITING_BYTES = 64 * 1024 * 1024
/** The current hour, and earlier ones of requests that take long. */
const OPEN_FILES = 3
const TRIES = 5

/** Lines of one hour, `YYYY-MM-DDTHH`. */
interface Lines {
  readonly hour: string
  readonly lines: string[]
}

/** The writer; folders and files are created with their first record. */
export class UsageRecords {
  readonly #files: HourFiles
  readonly #log: Log
  readonly #enqueue = createSerialQueue()
  /** The next write: records that arrive during a write share it. */
  #next: { readonly lines: Lines[]; readonly written: Promise<void> } | undefined
  #waiting: Lines[] = []
  #waitingBytes = 0
  #isFailing = false
  #syncFault: string | undefined
  readonly #timers: readonly NodeJS.Timeout[]

  constructor(dataDir: string, log: Log) {
    this.#files = new HourFiles(join(dataDir, 'raw', 'usage'))
    this.#log = log
    this.#timers = [
      setInterval(() => void this.#enqueue(() => this.#writeWaiting()), RETRY_MS).unref(),
      setInterval(() => void this.#sync(), SYNC_MS).unref(),
    ]
  }

  /** Resolves once the record is written, or is in the log and waits for another try. Never rejects. */
  async write(record: UsageRecord): Promise<void> {
    this.#next ??= this.#startWrite()
    add(this.#next.lines, record.ts.slice(0, 13), `${JSON.stringify(record)}\n`)
    await this.#next.written
  }

  /** Number of records that wait. */
  get waiting(): number {
    return this.#waiting.reduce((sum, { lines }) => sum + lines.length, 0)
  }

  /** Tries once more to write what waits, and closes the files. No record may follow. */
  async close(): Promise<void> {
    this.#timers.forEach(clearInterval)
    await this.#enqueue(() => this.#writeWaiting())
    await this.#sync()
    await this.#files.close()
  }

  #startWrite() {
    const lines: Lines[] = []
    const written = this.#enqueue(async () => {
      this.#next = undefined
      for (const one of lines) await this.#files.append(one).catch((error: unknown) => this.#keep(one, error))
      if (this.#isFailing) await this.#logged()
    })
    return { lines, written }
  }

  #keep({ hour, lines }: Lines, error: unknown): void {
    if (!this.#isFailing) this.#log.error({ err: error }, 'usage records cannot be written; trying again')
    this.#isFailing = true
    for (const line of lines) {
      this.#log.error({ usage_record: JSON.parse(line) }, NOT_WRITTEN)
      if (this.#waitingBytes + line.length > WAITING_BYTES) continue
      this.#waitingBytes += line.length
      add(this.#waiting, hour, line)
    }
  }

  /** Resolves once the log has its lines, or after a while if it fails as well. */
  async #logged(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, LOG_MS)
    this.#log.flush(() => resolve())
    await promise
    clearTimeout(timer)
  }

  async #writeWaiting(): Promise<void> {
    if (!this.#isFailing) return
    try {
      for (; this.#waiting[0] !== undefined; this.#waiting.shift()) await this.#files.append(this.#waiting[0])
    } catch {
      // The start of the failure was logged.
      return
    }
    this.#log.info('usage records are written again')
    this.#isFailing = false
    this.#waitingBytes = 0
  }

  async #sync(): Promise<void> {
    await this.#files.sync().catch((error: unknown) => {
      const fault = String(error)
      if (fault !== this.#syncFault)
        this.#log.error({ err: error }, 'usage records may not survive a power cut')
      this.#syncFault = fault
    })
  }
}

function add(all: Lines[], hour: string, line: string): void {
  const known = all.find((one) => one.hour === hour)
  if (known === undefined) all.push({ hour, lines: [line] })
  else known.lines.push(line)
}

interface HourFile {
  readonly path: string
  readonly handle: FileHandle
  readonly inode: number
  /** Bytes in whole lines. */
  size: number
  dirty: boolean
}

/**
 * Files per hour in the folders of days, `date=YYYY-MM-DD/chat-….ndjson`. Only this process appends to them. Others may
 * read, move or remove them at any time; a file ends with a whole line, unless the process dies within a write.
 */
class HourFiles {
  readonly #folder: string
  readonly #files = new Map<string, HourFile>()
  /** Differs for each process, and after a file was moved away. */
  #suffix = makeSuffix()

  constructor(folder: string) {
    this.#folder = folder
  }

  /**
   * Hands the lines to the operating system in one write, at the end of the hour's file. If that file was moved away, at
   * the end of a new one.
   * @throws if that failed; then no file has them.
   */
  async append({ hour, lines }: Lines): Promise<void> {
    const bytes = Buffer.from(lines.join(''))
    for (let tries = 1; tries <= TRIES; tries += 1) if (await this.#tryToAppend(hour, bytes)) return
    throw new Error(`The usage files of ${hour} are moved away again and again`)
  }

  /** Makes written lines survive a power cut. */
  async sync(): Promise<void> {
    await Promise.all([...this.#files.values()].map(syncFile))
  }

  async close(): Promise<void> {
    for (const [hour, { handle }] of this.#files) {
      this.#files.delete(hour)
      await handle.close().catch(() => undefined)
    }
  }

  /** Appends; false if the file was moved away, since then the bytes may be lost. */
  async #tryToAppend(hour: string, bytes: Buffer): Promise<boolean> {
    const file = this.#files.get(hour) ?? (await this.#open(hour))
    try {
      // Asynchronous on purpose: requests that end during a write share the next one.
      const { bytesWritten } = await file.handle.write(bytes)
      if (bytesWritten < bytes.length) throw new Error(`${bytesWritten} of ${bytes.length} bytes fitted`)
      if (statSync(file.path, { throwIfNoEntry: false })?.ino === file.inode) {
        file.size += bytes.length
        file.dirty = true
        return true
      }
    } catch (error) {
      await this.#restore(hour, file)
      throw error
    }
    await this.#restore(hour, file)
    this.#suffix = makeSuffix()
    return false
  }

  async #open(hour: string): Promise<HourFile> {
    for (const oldest of [...this.#files.keys()].toSorted().slice(0, 1 - OPEN_FILES)) {
      const file = this.#files.get(oldest)
      this.#files.delete(oldest)
      if (file !== undefined) await closeFile(file)
    }
    const folder = join(this.#folder, `date=${hour.slice(0, 10)}`)
    const path = join(folder, `chat-${hour.replaceAll('-', '')}Z-${this.#suffix}.ndjson`)
    await mkdir(folder, { recursive: true })
    const handle = await open(path, 'a')
    const { ino: inode, size } = await handle.stat()
    const file = { path, handle, inode, size, dirty: false }
    this.#files.set(hour, file)
    return file
  }

  /** Truncates what a failed write left, and closes the file. */
  async #restore(hour: string, { handle, size }: HourFile): Promise<void> {
    this.#files.delete(hour)
    try {
      await handle.truncate(size)
    } catch {
      // No line may follow half a line.
      this.#suffix = makeSuffix()
    } finally {
      await handle.close().catch(() => undefined)
    }
  }
}

function makeSuffix(): string {
  return `${process.pid}-${randomBytes(4).toString('hex')}`
}

async function syncFile(file: HourFile): Promise<void> {
  if (!file.dirty) return
  file.dirty = false
  await file.handle.datasync()
}

async function closeFile(file: HourFile): Promise<void> {
  try {
    await syncFile(file)
  } finally {
    await file.handle.close()
  }
}
