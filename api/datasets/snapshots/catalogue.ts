/** The catalogue of all snapshots, from their records (CONTRACT 4.6): retained, pruned and retracted ones. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { asOfFromId } from '../../../pipeline/contract/calendar.ts'
import {
  CROISSANT_FILE,
  RECORDS_FOLDER,
  SNAPSHOTS_FOLDER,
  SNAPSHOTS_PATH,
} from '../../../pipeline/contract/files.ts'
import {
  readRecord,
  recordPath,
  retractionIn,
  snapshotRecordSchema,
  type Retraction,
  type SnapshotRecord,
} from '../../../pipeline/contract/snapshot-record.ts'
import type { Log } from '../../process/log.ts'
import { unlessAbsent } from '../../process/system-errors.ts'

/** The public words of a fault; the log has the error. */
export const UNREADABLE = 'cannot be read and is left out'

/** A fault of a published file or a record, for an operator to fix. */
export interface Fault {
  /** The file or folder, as a path in DATA_DIR. */
  readonly thing: string
  /** The fault, as words after the name; public. */
  readonly message: string
}

const fileSchema = z.object({
  name: z.string(),
  media_type: z.string(),
  bytes: z.int().nonnegative(),
  sha256: z.string(),
  url: z.string().describe('Path at the origin.'),
})
export type SnapshotFile = z.infer<typeof fileSchema>

/** A snapshot with its files; in the list without the monthly ones. Only a retained one still has them. */
export const snapshotEntrySchema = snapshotRecordSchema
  .omit({ retracted: true, input_fingerprint: true })
  .extend({
    url: z.string().describe('Path at the origin: there are all files, also the monthly ones.'),
    files: z.array(fileSchema),
    state: z.enum(['retained', 'pruned', 'retracted']),
    retracted_at: z.iso.datetime({ precision: 0 }).optional(),
    reason: z.string().optional().describe('Why it was retracted.'),
    current: z.boolean().describe('Whether the rankings answer from it.'),
  })
export type SnapshotEntry = Omit<z.infer<typeof snapshotEntrySchema>, 'current'>

export interface SnapshotCatalogue {
  /** All retained snapshots, newest first. */
  list(): readonly SnapshotEntry[]
  /** All recorded snapshots ever published, newest first, with their state. */
  listAll(): readonly SnapshotEntry[]
  /** The withdrawn snapshots, newest first. */
  retractions(): readonly Retraction[]
  /** Identifiers of the snapshots on disk that are not retracted, newest first; also those without a record. */
  ids(): readonly string[]
  isRetained(id: string): boolean
  /** The entry of the snapshot with this identifier; undefined for any other text. */
  find(id: string): SnapshotEntry | undefined
  /**
   * The retained snapshot with this identifier and all its files; undefined for any other text.
   * @throws if its record cannot be read.
   */
  describe(id: string): SnapshotEntry | undefined
  /** The records that cannot be read; they are left out. */
  faults(): readonly Fault[]
}

/** What the folders hold at one time. */
interface Contents {
  /** Newest first. */
  readonly ids: readonly string[]
  /** Newest first. */
  readonly entries: ReadonlyMap<string, SnapshotEntry>
  readonly retractions: readonly Retraction[]
  readonly faults: readonly Fault[]
}

/** A folder that changed this recently may change again without another time. */
const RECENT_MS = 1000

/** The catalogue of the snapshots under `dataDir`. */
export function openCatalogue(dataDir: string, log: Log): SnapshotCatalogue {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const readContents = contentsReader(folder, log)
  let last: { readonly changedAt: number; readonly contents: Contents } | undefined

  function contents(): Contents {
    const changedAt = Math.max(changeOf(folder), changeOf(join(folder, RECORDS_FOLDER)))
    if (last?.changedAt === changedAt) return last.contents
    const found = readContents()
    const isSettled = found.faults.length === 0 && Date.now() - changedAt > RECENT_MS
    last = isSettled ? { changedAt, contents: found } : undefined
    return found
  }

  return {
    list: () => [...contents().entries.values()].filter(({ state }) => state === 'retained'),
    listAll: () => [...contents().entries.values()],
    retractions: () => contents().retractions,
    ids: () => contents().ids,
    isRetained: (id) => contents().ids.includes(id),
    find: (id) => contents().entries.get(id),
    describe(id) {
      const record = contents().ids.includes(id) ? readRecord(folder, id) : undefined
      return record && entryOf(record, true)
    },
    faults: () => contents().faults,
  }
}

/** Reads what is on disk. Unreadable records are left out, and logged once each. */
function contentsReader(folder: string, log: Log): () => Contents {
  const summaryOf = summaryReader(folder)
  const logged = new Set<string>()

  function faultOf(id: string, error: unknown): Fault {
    const words = `${id} ${String(error)}`
    if (!logged.has(words)) log.error({ snapshot: id, err: error }, `record ${UNREADABLE}`)
    logged.add(words)
    return { thing: `${SNAPSHOTS_FOLDER}/${RECORDS_FOLDER}/${id}.json`, message: UNREADABLE }
  }

  return () => {
    const onDisk = new Set(identifiersIn(folder))
    const known = onDisk.union(new Set(identifiersIn(join(folder, RECORDS_FOLDER))))
    const retracted = new Set<string>()
    const entries = new Map<string, SnapshotEntry>()
    const retractions: Retraction[] = []
    const faults: Fault[] = []
    for (const id of newestFirst(known)) {
      try {
        const record = summaryOf(id)
        if (record === undefined) {
          const message = 'has no record and is left out of the list'
          faults.push({ thing: `${SNAPSHOTS_FOLDER}/${id}`, message })
          continue
        }
        const retraction = retractionIn(record)
        if (retraction !== undefined) {
          retracted.add(id)
          retractions.push(retraction)
        }
        entries.set(id, entryOf(record, onDisk.has(id) && retraction === undefined))
      } catch (error) {
        faults.push(faultOf(id, error))
      }
    }
    return { ids: newestFirst(onDisk.difference(retracted)), entries, retractions, faults }
  }
}

/** Reads records without their monthly files, which would be most of the list; again only if the file was replaced. */
function summaryReader(folder: string): (id: string) => SnapshotRecord | undefined {
  const known = new Map<string, { readonly version: string; readonly record: SnapshotRecord }>()
  return (id) => {
    const found = statSync(recordPath(folder, id), { throwIfNoEntry: false })
    const version = `${found?.ino} ${found?.mtimeMs} ${found?.size}`
    const former = known.get(id)
    if (former?.version === version) return former.record
    const whole = readRecord(folder, id)
    if (whole === undefined) return undefined
    const record = { ...whole, files: whole.files.filter((file) => !isMonth(file)) }
    known.set(id, { version, record })
    return record
  }
}

function newestFirst(ids: Iterable<string>): readonly string[] {
  return [...ids].toSorted().toReversed()
}

/** The time of the last change in a folder, ms since 1970; 0 if it does not exist. */
function changeOf(folder: string): number {
  return statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** The identifiers that a folder's names begin with; none if it does not exist. */
function identifiersIn(folder: string): readonly string[] {
  return (unlessAbsent(() => readdirSync(folder)) ?? [])
    .map((name) => name.replace(/\.json$/, ''))
    .filter((name) => asOfFromId(name) !== undefined)
}

function entryOf(
  { retracted, pruned_at, input_fingerprint: _ofTheRun, ...record }: SnapshotRecord,
  isRetained: boolean,
): SnapshotEntry {
  const url = `${SNAPSHOTS_PATH}/${record.id}`
  const files = record.files.map(({ name, bytes, sha256 }) => ({
    name,
    bytes,
    sha256,
    media_type: mediaTypeOf(name),
    url: `${url}/${name}`,
  }))
  const shared = { ...record, url, files }
  // An interrupted prune has recorded its day, but the snapshot is still here.
  if (isRetained) return { ...shared, state: 'retained' }
  const pruned = pruned_at === undefined ? shared : { ...shared, pruned_at }
  if (retracted === undefined) return { ...pruned, state: 'pruned' }
  return { ...pruned, state: 'retracted', retracted_at: retracted.at, reason: retracted.reason }
}

/** The media type of croissant.json. */
export const CROISSANT_TYPE = 'application/ld+json; profile="http://mlcommons.org/croissant/1.1"'

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  duckdb: 'application/octet-stream',
  parquet: 'application/vnd.apache.parquet',
  csv: 'text/csv; charset=utf-8; header=present',
  json: 'application/json; charset=utf-8',
  gz: 'application/gzip',
  md: 'text/markdown; charset=utf-8',
}
const PLAIN_TEXT = 'text/plain; charset=utf-8'

function mediaTypeOf(name: string): string {
  // Older snapshots list it.
  if (name === CROISSANT_FILE) return CROISSANT_TYPE
  return MEDIA_TYPES[name.split('.').at(-1) ?? ''] ?? PLAIN_TEXT
}

/** Whether a file holds one month of a table. */
export function isMonth({ name }: Pick<SnapshotFile, 'name'>): boolean {
  return name.includes('/month=')
}
