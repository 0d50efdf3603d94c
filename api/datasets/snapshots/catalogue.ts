/** What is known of each retained snapshot from the files beside it, read once: a snapshot never changes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { SNAPSHOTS_PATH, type Retraction } from '../../../pipeline/contract/files.ts'
import {
  describeFolder,
  snapshotRecordSchema,
  type SnapshotRecord,
} from '../../../pipeline/contract/snapshot-record.ts'
import type { Log } from '../../process/log.ts'
import type { RetainedSnapshots } from './retained.ts'

const fileSchema = z.object({
  name: z.string(),
  media_type: z.string(),
  bytes: z.int().nonnegative(),
  sha256: z.string(),
  url: z.string().describe('Path at the origin.'),
})
export type SnapshotFile = z.infer<typeof fileSchema>

/** What became of a snapshot; only the files of a retained one are there. */
const SNAPSHOT_STATES = ['retained', 'pruned', 'retracted'] as const

/** A snapshot as the list has it. */
export const snapshotEntrySchema = snapshotRecordSchema.extend({
  url: z.string().describe('Path at the origin.'),
  files: z.array(fileSchema),
  state: z.enum(SNAPSHOT_STATES),
  retracted_at: z.iso.datetime({ precision: 0 }).optional(),
  reason: z.string().optional().describe('Why it was retracted.'),
  current: z.boolean().describe('Whether it is what the rankings answer from.'),
})
export type SnapshotEntry = Omit<z.infer<typeof snapshotEntrySchema>, 'current'>

export interface SnapshotCatalogue {
  /** All retained snapshots, newest first. */
  list(): readonly SnapshotEntry[]
  /** All snapshots ever published of which there is a record, newest first, with what became of each. */
  listAll(): readonly SnapshotEntry[]
  /** The withdrawn snapshots, newest first. */
  retractions(): readonly Retraction[]
  /** The retained one with this identifier; undefined for any other text. */
  find(id: string): SnapshotEntry | undefined
  /** How the one with this identifier describes itself to machines. */
  metadata(id: string): SnapshotMetadata | undefined
}

/** Read from croissant.json, which is a description in the words of schema.org too. */
interface SnapshotMetadata {
  /** BibTeX. */
  readonly citeAs: string
  /** schema.org/Dataset as JSON-LD, without the fields of the tables. */
  readonly structuredData: object
}

const croissantSchema = z.looseObject({ citeAs: z.string(), recordSet: z.unknown() })

interface Known {
  readonly entry: SnapshotEntry
  readonly metadata: SnapshotMetadata
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  duckdb: 'application/octet-stream',
  parquet: 'application/vnd.apache.parquet',
  csv: 'text/csv; charset=utf-8; header=present',
  json: 'application/json; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
}
const CROISSANT = 'application/ld+json; profile="http://mlcommons.org/croissant/1.1"'
const PLAIN_TEXT = 'text/plain; charset=utf-8'

/** The catalogue of the snapshots on disk; one whose metadata cannot be read is left out, and the log says why. */
export function catalogueOf(retained: RetainedSnapshots, log: Log): SnapshotCatalogue {
  const known = new Map<string, Known>()
  const lastFaults = new Map<string, string>()

  function find(id: string): Known | undefined {
    return retained.ids().includes(id) ? read(id) : undefined
  }

  function read(id: string): Known | undefined {
    const found = known.get(id) ?? readOrTell(id)
    if (found !== undefined) known.set(id, found)
    return found
  }

  function readOrTell(id: string): Known | undefined {
    try {
      const folder = retained.folder(id)
      return { entry: entryOf(describeFolder(folder), 'retained'), metadata: readMetadata(folder) }
    } catch (error) {
      // It may pass, so the next request tries again. The same fault comes back then; once in the log is enough.
      if (lastFaults.get(id) !== String(error))
        log.warn({ snapshot: id, err: error }, 'snapshot cannot be listed')
      lastFaults.set(id, String(error))
      return undefined
    }
  }

  // What is recorded of a snapshot that is gone does not change any more.
  const ended = new Map<string, SnapshotEntry>()

  function gone(id: string): SnapshotEntry | undefined {
    const entry = ended.get(id) ?? readGone(id)
    if (entry !== undefined) ended.set(id, entry)
    return entry
  }

  function readGone(id: string): SnapshotEntry | undefined {
    const record = retained.record(id)
    if (record === undefined) return undefined
    const retraction = retained.retraction(id)
    if (retraction === undefined) return entryOf(record, 'pruned')
    const { retracted_at, reason } = retraction
    return { ...entryOf(record, 'retracted'), retracted_at, reason }
  }

  return {
    listAll() {
      const ids = new Set([...retained.ids(), ...retained.recordedIds()])
      return [...ids]
        .toSorted()
        .toReversed()
        .flatMap((id) => find(id)?.entry ?? gone(id) ?? [])
    },
    list: () => retained.ids().flatMap((id) => read(id)?.entry ?? []),
    retractions: () => retained.retractions(),
    find: (id) => find(id)?.entry,
    metadata: (id) => find(id)?.metadata,
  }
}

function readMetadata(folder: string): SnapshotMetadata {
  const document = croissantSchema.parse(JSON.parse(readFileSync(join(folder, 'croissant.json'), 'utf8')))
  const { recordSet: _fields, ...structuredData } = document
  return { citeAs: document.citeAs, structuredData }
}

function entryOf(record: SnapshotRecord, state: SnapshotEntry['state']): SnapshotEntry {
  const url = `${SNAPSHOTS_PATH}/${record.id}`
  const files = record.files.map((file) => ({
    ...file,
    media_type: mediaTypeOf(file.name),
    url: `${url}/${file.name}`,
  }))
  return { ...record, url, files, state }
}

function mediaTypeOf(name: string): string {
  if (name === 'croissant.json') return CROISSANT
  return MEDIA_TYPES[name.split('.')[1] ?? ''] ?? PLAIN_TEXT
}
