/** The catalogue of all snapshots, from their records (CONTRACT 4.6): retained, pruned and retracted ones. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { asOfFromId, snapshotId } from '../../../pipeline/contract/calendar.ts'
import { RECORDS_FOLDER, SNAPSHOTS_FOLDER, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import {
  readRecord,
  recordPath,
  retractionIn,
  snapshotRecordSchema,
  type Retraction,
  type SnapshotRecord,
} from '../../../pipeline/contract/snapshot-record.ts'
import { ApiError } from '../../http/errors.ts'
import { invalidParameter } from '../../http/query-parameters.ts'
import type { Log } from '../../process/log.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import { FORMATS } from '../formats.ts'

/** The public words of a fault; the log has the error. */
export const UNREADABLE = 'cannot be read and is left out'

/** A fault of a published file or a record, for an operator to fix. */
export type Fault = {
  /** The file or folder, as a path in DATA_DIR. */
  readonly thing: string
  /** The fault, as words after the name; public. */
  readonly message: string
}

/** A snapshot with its files; in the list without the monthly ones. Only a retained one still has them. */
export const snapshotEntrySchema = snapshotRecordSchema
  .omit({ retracted: true, input_fingerprint: true })
  .extend({
    url: z.string().describe('Path at the origin: there are all files, also the monthly ones.'),
    files: z.array(
      z.object({
        name: z.string(),
        media_type: z.string(),
        bytes: z.int().nonnegative(),
        sha256: z.string(),
        url: z.string().describe('Path at the origin.'),
      }),
    ),
    state: z.enum(['retained', 'pruned', 'retracted']),
    retracted_at: z.iso.datetime({ precision: 0 }).optional(),
    reason: z.string().optional().describe('Why it was retracted.'),
    current: z.boolean().describe('Whether the rankings answer from it.'),
  })
export type SnapshotEntry = Omit<z.infer<typeof snapshotEntrySchema>, 'current'>
export type SnapshotFile = SnapshotEntry['files'][number]

/** What the folders hold at one time; lists are newest first. */
type Contents = {
  /** All recorded snapshots ever published, without their monthly files, which would be most of the list. */
  readonly entries: readonly SnapshotEntry[]
  readonly retractions: readonly Retraction[]
  /** The records that cannot be read: their snapshots are left out. */
  readonly faults: readonly Fault[]
}

/** A folder that changed this recently may change again without another time. */
const RECENT_MS = 1000

/** The catalogue of the snapshots in `folder`. */
export class Catalogue {
  readonly #folder: string
  readonly #log: Log
  readonly #logged = new Set<string>()
  /** The records without their monthly files, each as long as its file is not replaced. */
  readonly #summaries = new Map<string, { readonly changedAt: number; readonly record: SnapshotRecord }>()
  #last: { readonly changedAt: number; readonly until: number; readonly contents: Contents } | undefined

  constructor(folder: string, log: Log) {
    this.#folder = folder
    this.#log = log
  }

  /** What the folders hold; they are read again if they changed. */
  read(): Contents {
    const now = Date.now()
    const changedAt = Math.max(changeOf(this.#folder), changeOf(join(this.#folder, RECORDS_FOLDER)))
    if (this.#last?.changedAt === changedAt && now < this.#last.until) return this.#last.contents
    const contents = this.#readFolders()
    // A repaired file need not change its folder.
    const until = contents.faults.length === 0 ? Infinity : now + RECENT_MS
    this.#last = now - changedAt > RECENT_MS ? { changedAt, until, contents } : undefined
    return contents
  }

  /**
   * The identifier of the retained snapshot computed at `asOf`, a time (ISO 8601) or an identifier.
   * @throws ApiError 400 for an unknown one, 410 for a retracted or pruned one.
   */
  retainedAt(asOf: string): string {
    const time = asOfFromId(asOf) ?? new Date(asOf)
    const id = snapshotId(time)
    // All snapshots were computed at whole seconds.
    if (time.getMilliseconds() === 0 && this.#isRetained(id)) return id
    throw invalidParameter('as_of', asOf, `the as_of of a retained snapshot; ${SNAPSHOTS_PATH} lists them`)
  }

  /**
   * The retained snapshot with this identifier and all its files; undefined for any other text.
   * @throws ApiError 410 for a retracted or pruned one.
   */
  describe(id: string): SnapshotEntry | undefined {
    const record = this.#isRetained(id) ? readRecord(this.#folder, id) : undefined
    return record && entryOf(record, true)
  }

  /** Logs a fault that every poll finds, once. */
  logFault(id: string, error: unknown, message: string): void {
    const words = `${id} ${message} ${String(error)}`
    if (!this.#logged.has(words)) this.#log.error({ snapshot: id, err: error }, message)
    this.#logged.add(words)
  }

  /**
   * Whether a retained snapshot has this identifier.
   * @throws ApiError 410 for a retracted or pruned one, with the reason and the nearest retained one.
   */
  #isRetained(id: string): boolean {
    const { entries, faults } = this.read()
    const entry = entries.find((each) => each.id === id)
    if (entry !== undefined && entry.state !== 'retained') throw gone(entry, retainedIn(entries))
    // A snapshot does not become unknown while its record cannot be read.
    return entry !== undefined || faults.some(({ thing }) => thing === recordPath(SNAPSHOTS_FOLDER, id))
  }

  #readFolders(): Contents {
    const onDisk = new Set(identifiersIn(this.#folder))
    const recorded = identifiersIn(join(this.#folder, RECORDS_FOLDER))
    const records: SnapshotRecord[] = []
    const faults: Fault[] = []
    for (const id of [...onDisk.union(new Set(recorded))].toSorted().toReversed()) {
      try {
        records.push(this.#summaryOf(id))
      } catch (error) {
        this.logFault(id, error, `record ${UNREADABLE}`)
        faults.push({ thing: recordPath(SNAPSHOTS_FOLDER, id), message: UNREADABLE })
      }
    }
    const retractions = records.flatMap((record) => retractionIn(record) ?? [])
    const entries = records.map((record) => entryOf(record, onDisk.has(record.id)))
    return { entries, retractions, faults }
  }

  #summaryOf(id: string): SnapshotRecord {
    // Of a record that is still in the snapshot's folder: 0.
    const changedAt = changeOf(recordPath(this.#folder, id))
    const former = this.#summaries.get(id)
    if (former?.changedAt === changedAt) return former.record
    const whole = readRecord(this.#folder, id)
    if (whole === undefined) throw new Error(`The snapshot ${id} has no record`)
    const record = { ...whole, files: whole.files.filter((file) => !isMonth(file)) }
    this.#summaries.set(id, { changedAt, record })
    return record
  }
}

/** The retained snapshots among these, by their identifiers. */
export function retainedIn(entries: readonly SnapshotEntry[]): readonly string[] {
  return entries.filter(({ state }) => state === 'retained').map(({ id }) => id)
}

function gone(
  { id, state, reason, retracted_at, pruned_at }: SnapshotEntry,
  retained: readonly string[],
): ApiError {
  const pruned = pruned_at === undefined ? 'is not retained' : `was pruned on ${pruned_at}`
  const ending = reason === undefined ? pruned : `was retracted: ${reason.replace(/\.$/, '')}`
  const distance = (each: string) => Math.abs(Number(asOfFromId(each)) - Number(asOfFromId(id)))
  // Of two equally near ones the newer, which comes first.
  const [nearest] = retained.toSorted((one, other) => distance(one) - distance(other))
  const instead = nearest === undefined ? 'None is retained' : `The nearest retained snapshot is ${nearest}`
  const metadata = { snapshot: id, state, reason, retracted_at, pruned_at, nearest_retained: nearest ?? null }
  return new ApiError(410, `Snapshot ${id} ${ending}. ${instead}`, { metadata })
}

/** The time of the last change of a file or in a folder, ms since 1970; 0 if it does not exist. */
function changeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0
}

/** The identifiers that a folder's names begin with; none if it does not exist. */
function identifiersIn(folder: string): readonly string[] {
  return (unlessAbsent(() => readdirSync(folder)) ?? [])
    .map((name) => name.replace(/\.json$/, ''))
    .filter((name) => asOfFromId(name) !== undefined)
}

function entryOf(
  { retracted, pruned_at, input_fingerprint: _ofTheRun, files, ...record }: SnapshotRecord,
  isOnDisk: boolean,
): SnapshotEntry {
  const url = `${SNAPSHOTS_PATH}/${record.id}`
  const state = retracted !== undefined ? 'retracted' : isOnDisk ? 'retained' : 'pruned'
  return {
    ...record,
    url,
    files: files.map(({ name, bytes, sha256 }) => {
      return { name, bytes, sha256, media_type: mediaTypeOf(name), url: `${url}/${name}` }
    }),
    state,
    // An interrupted prune has recorded its day, but the snapshot is still here.
    ...(state !== 'retained' && pruned_at !== undefined && { pruned_at }),
    ...(retracted !== undefined && { retracted_at: retracted.at, reason: retracted.reason }),
  }
}

/** The media type of croissant.json. */
export const CROISSANT_TYPE = 'application/ld+json; profile="http://mlcommons.org/croissant/1.1"'

/** Media types by the ending of a name. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  duckdb: 'application/octet-stream',
  parquet: FORMATS.parquet.contentType,
  csv: FORMATS.csv.contentType,
  json: FORMATS.json.contentType,
  gz: 'application/gzip',
  md: 'text/markdown; charset=utf-8',
}

function mediaTypeOf(name: string): string {
  return MEDIA_TYPES[name.split('.').at(-1) ?? ''] ?? 'text/plain; charset=utf-8'
}

/** Whether a file holds one month of a table. */
export function isMonth({ name }: Pick<SnapshotFile, 'name'>): boolean {
  return name.includes('/month=')
}
