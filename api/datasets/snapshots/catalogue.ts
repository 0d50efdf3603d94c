/** What is known of each retained snapshot from the files beside it, read once: a snapshot never changes. */
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { daySchema } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOTS_PATH } from '../../../pipeline/contract/files.ts'
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

/** A snapshot as the list tells it. */
export const snapshotEntrySchema = z.object({
  id: z.string(),
  as_of: z.iso.datetime({ precision: 0 }),
  first_day: daySchema,
  data_through: daySchema,
  version: z.string(),
  days_restated: z.int().nonnegative().describe('Days whose published figures it changed.'),
  publisher: z.string(),
  attribution: z.string().describe('The line to print when the data is reused.'),
  url: z.string().describe('Path at the origin.'),
  rows: z.record(z.string(), z.int().nonnegative()).describe('Rows of each table that is handed out.'),
  files: z.array(fileSchema),
  current: z.boolean().describe('Whether it is what the rankings answer from.'),
})
export type SnapshotEntry = Omit<z.infer<typeof snapshotEntrySchema>, 'current'>

const descriptorSchema = z.object({
  snapshot: z.object({
    id: z.string(),
    as_of: z.iso.datetime({ precision: 0 }),
    first_day: daySchema,
    data_through: daySchema,
    schema: z.string(),
    days_restated: z.int().nonnegative(),
    publisher: z.string(),
    attribution: z.string(),
  }),
  resources: z.array(z.object({ path: z.string(), rows: z.int().nonnegative().optional() })),
})

export interface SnapshotCatalogue {
  /** All retained snapshots, newest first. */
  list(): readonly SnapshotEntry[]
  /** The one with this identifier; undefined for any other text. */
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

/** The file of checksums, which cannot name its own. */
const SUMS_FILE = 'SHA256SUMS'
const SUMS_LINE = /^([0-9a-f]{64}) {2}(\S+)$/

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
      return { entry: readEntry(id, folder), metadata: readMetadata(folder) }
    } catch (error) {
      // It may pass, so the next request tries again. The same fault comes back then; once in the log is enough.
      if (lastFaults.get(id) !== String(error))
        log.warn({ snapshot: id, err: error }, 'snapshot cannot be listed')
      lastFaults.set(id, String(error))
      return undefined
    }
  }

  return {
    list: () => retained.ids().flatMap((id) => read(id)?.entry ?? []),
    find: (id) => find(id)?.entry,
    metadata: (id) => find(id)?.metadata,
  }
}

function readMetadata(folder: string): SnapshotMetadata {
  const document = croissantSchema.parse(JSON.parse(readFileSync(join(folder, 'croissant.json'), 'utf8')))
  const { recordSet: _fields, ...structuredData } = document
  return { citeAs: document.citeAs, structuredData }
}

function readEntry(id: string, folder: string): SnapshotEntry {
  const text = readFileSync(join(folder, 'datapackage.json'), 'utf8')
  const { snapshot, resources } = descriptorSchema.parse(JSON.parse(text))
  return {
    id,
    as_of: snapshot.as_of,
    first_day: snapshot.first_day,
    data_through: snapshot.data_through,
    version: snapshot.schema,
    days_restated: snapshot.days_restated,
    publisher: snapshot.publisher,
    url: `${SNAPSHOTS_PATH}/${id}`,
    attribution: snapshot.attribution,
    rows: rowsOf(resources),
    files: readFiles(id, folder),
  }
}

/** Rows of each table: those of its one file, the same in every format, or of the files of all months. */
function rowsOf(resources: readonly { readonly path: string; readonly rows?: number | undefined }[]) {
  const rows: Record<string, number> = {}
  for (const { path, rows: count = 0 } of resources.filter((each) => each.rows !== undefined)) {
    const [folder, month] = path.split('/')
    const table = folder?.split('.')[0] ?? ''
    rows[table] = month === undefined ? count : (rows[table] ?? 0) + count
  }
  return rows
}

function readFiles(id: string, folder: string): SnapshotFile[] {
  const sums = readFileSync(join(folder, SUMS_FILE), 'utf8')
  const lines = [...sums.split('\n'), `${sha256Of(sums)}  ${SUMS_FILE}`]
  return lines.flatMap((line) => {
    const [, sha256, name] = SUMS_LINE.exec(line) ?? []
    if (sha256 === undefined || name === undefined) return []
    return {
      name,
      media_type: mediaTypeOf(name),
      bytes: statSync(join(folder, name)).size,
      sha256,
      url: `${SNAPSHOTS_PATH}/${id}/${name}`,
    }
  })
}

function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function mediaTypeOf(name: string): string {
  if (name === 'croissant.json') return CROISSANT
  return MEDIA_TYPES[name.split('.')[1] ?? ''] ?? PLAIN_TEXT
}
