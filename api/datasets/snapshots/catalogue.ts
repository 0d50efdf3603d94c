/** The descriptions of retained snapshots, read once from their files: a snapshot never changes. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { CROISSANT_FILE, SNAPSHOTS_FOLDER, SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
import {
  snapshotRecordSchema,
  type Retraction,
  type SnapshotRecord,
} from '../../../pipeline/contract/snapshot-record.ts'
import { LEFT_OUT } from './faults.ts'
import type { RetainedSnapshots } from './retained.ts'
import { CROISSANT_TYPE } from './croissant.ts'
import { readCroissant, type SnapshotMetadata } from './structured-data.ts'

const fileSchema = z.object({
  name: z.string(),
  media_type: z.string(),
  bytes: z.int().nonnegative(),
  sha256: z.string(),
  url: z.string().describe('Path at the origin.'),
})
export type SnapshotFile = z.infer<typeof fileSchema>

/** Whether a file holds one month of a table. */
export function isMonth({ name }: SnapshotFile): boolean {
  return name.includes('/month=')
}

/** The state of a snapshot; only retained ones have files. */
const SNAPSHOT_STATES = ['retained', 'pruned', 'retracted'] as const

/** An entry of the list of snapshots. */
export const snapshotEntrySchema = snapshotRecordSchema
  .omit({ retracted: true, input_fingerprint: true })
  .extend({
    url: z.string().describe('Path at the origin.'),
    files: z.array(fileSchema),
    state: z.enum(SNAPSHOT_STATES),
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
  retractions(): readonly Retraction[]
  /** The retained one with this identifier; undefined for any other text. */
  find(id: string): SnapshotEntry | undefined
  /** The machine-readable description of the snapshot with this identifier. */
  metadata(id: string): SnapshotMetadata | undefined
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  duckdb: 'application/octet-stream',
  parquet: 'application/vnd.apache.parquet',
  csv: 'text/csv; charset=utf-8; header=present',
  json: 'application/json; charset=utf-8',
  gz: 'application/gzip',
  md: 'text/markdown; charset=utf-8',
}
const PLAIN_TEXT = 'text/plain; charset=utf-8'

/** The catalogue of the snapshots on disk; unreadable ones are left out and are faults of `retained`. */
export function catalogueOf(retained: RetainedSnapshots): SnapshotCatalogue {
  const isRetained = (id: string) => retained.ids().includes(id)

  const entry = keepFound((id) => {
    const published = retained.record(id)
    if (published === undefined) return undefined
    // An interrupted prune has recorded its day, but the snapshot is still here.
    const { pruned_at: _stopped, ...record } = published
    return entryOf(record, 'retained')
  })

  const metadata = keepFound((id) => {
    const path = `${SNAPSHOTS_FOLDER}/${id}/${CROISSANT_FILE}`
    return retained.faults.read(path, LEFT_OUT, () => readMetadata(retained.folder(id)))
  })

  // The record of a removed snapshot never changes.
  const pruned = keepFound((id) => {
    const record = retained.record(id)
    return record && entryOf(record, 'pruned')
  })

  function gone(id: string): SnapshotEntry | undefined {
    const recorded = pruned(id)
    const retraction = retained.retraction(id)
    if (recorded === undefined || retraction === undefined) return recorded
    const { retracted_at, reason } = retraction
    return { ...recorded, state: 'retracted', retracted_at, reason }
  }

  return {
    listAll() {
      const here = new Set(retained.ids())
      const ids = new Set([...here, ...retained.recordedIds()])
      return [...ids]
        .toSorted()
        .toReversed()
        .flatMap((id) => (here.has(id) ? entry(id) : gone(id)) ?? [])
    },
    list: () => retained.ids().flatMap((id) => entry(id) ?? []),
    retractions: () => retained.retractions(),
    find: (id) => (isRetained(id) ? entry(id) : undefined),
    metadata: (id) => (isRetained(id) ? metadata(id) : undefined),
  }
}

/** Like `read`, which is called again for what it did not find. */
function keepFound<T>(read: (id: string) => T | undefined): (id: string) => T | undefined {
  const found = new Map<string, T>()
  return (id) => {
    const value = found.get(id) ?? read(id)
    if (value !== undefined) found.set(id, value)
    return value
  }
}

/** Undefined for a removed folder. */
function readMetadata(folder: string): SnapshotMetadata | undefined {
  return existsSync(folder) ? readCroissant(readFileSync(join(folder, CROISSANT_FILE), 'utf8')) : undefined
}

function entryOf(
  { retracted: _retracted, input_fingerprint: _fingerprint, ...record }: SnapshotRecord,
  state: SnapshotEntry['state'],
): SnapshotEntry {
  const url = `${SNAPSHOTS_PATH}/${record.id}`
  const files = record.files.map(({ name, bytes, sha256 }) => ({
    name,
    bytes,
    sha256,
    media_type: mediaTypeOf(name),
    url: `${url}/${name}`,
  }))
  return { ...record, url, files, state }
}

function mediaTypeOf(name: string): string {
  // Older snapshots list it.
  if (name === CROISSANT_FILE) return CROISSANT_TYPE
  return MEDIA_TYPES[name.split('.').at(-1) ?? ''] ?? PLAIN_TEXT
}
