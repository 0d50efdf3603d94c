/** The permanent record of a published snapshot, which keeps citations checkable (CONTRACT 4.6). */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { daySchema } from './calendar.ts'
import { RECORDS_FOLDER } from './files.ts'

const timeSchema = z.iso.datetime({ precision: 0 })

const descriptorSchema = z.object({
  snapshot: z.object({
    id: z.string(),
    as_of: timeSchema,
    first_day: daySchema,
    data_through: daySchema,
    schema: z.string(),
    days_restated: z.int().nonnegative(),
    publisher: z.string(),
    attribution: z.string(),
    total_requests: z.string().optional(),
    total_tokens: z.string().optional(),
  }),
  resources: z.array(z.object({ path: z.string(), rows: z.int().nonnegative().optional() })),
})

/** Facts, row counts and checksums of a snapshot. They never change; `pruned_at` is added once its files are removed. */
export const snapshotRecordSchema = z.object({
  id: z.string(),
  as_of: timeSchema,
  first_day: daySchema,
  data_through: daySchema,
  version: z.string(),
  days_restated: z.int().nonnegative().describe('Days whose published figures it changed.'),
  publisher: z.string(),
  attribution: z.string().describe('The line to print when the data is reused.'),
  total_requests: z.string().optional().describe('Requests of all days; missing in older snapshots.'),
  total_tokens: z.string().optional().describe('Tokens of all days; missing in older snapshots.'),
  rows: z
    .record(z.string(), z.int().nonnegative())
    .describe('Rows of each table that is published as files.'),
  files: z.array(z.object({ name: z.string(), bytes: z.int().nonnegative(), sha256: z.string() })),
  pruned_at: timeSchema.optional(),
})
export type SnapshotRecord = z.infer<typeof snapshotRecordSchema>

/** A published file in the record. */
export type PublishedFile = SnapshotRecord['files'][number]

/** Path of a snapshot's record. */
export function recordPath(snapshotsFolder: string, id: string): string {
  return join(snapshotsFolder, RECORDS_FOLDER, `${id}.json`)
}

/**
 * The record of a snapshot; undefined if there is none.
 * @throws if it cannot be read.
 */
export function readRecord(snapshotsFolder: string, id: string): SnapshotRecord | undefined {
  const path = recordPath(snapshotsFolder, id)
  if (!existsSync(path)) return undefined
  return snapshotRecordSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
}

/** The fault of a published file that its size shows, as words after its name; undefined if there is none. */
export function sizeFault(folder: string, { name, bytes }: PublishedFile): string | undefined {
  const found = statSync(join(folder, name), { throwIfNoEntry: false })?.size
  if (found === bytes) return undefined
  return found === undefined ? 'is missing' : `has ${found} bytes, but ${bytes} were published`
}

/** The checksum file, which cannot list itself. */
export const SUMS_FILE = 'SHA256SUMS'
const SUMS_LINE = /^([0-9a-f]{64}) {2}(\S+)$/

/**
 * Makes the record of a snapshot from the descriptive files in its folder.
 * @throws if they are missing or damaged.
 */
export function describeFolder(folder: string): SnapshotRecord {
  const text = readFileSync(join(folder, 'datapackage.json'), 'utf8')
  const { snapshot, resources } = descriptorSchema.parse(JSON.parse(text))
  const { schema, ...facts } = snapshot
  return { ...facts, version: schema, rows: rowsOf(resources), files: readSums(folder) }
}

/** Rows of each table: of its one file (every format has the same rows), or of all monthly Parquet files. */
function rowsOf(resources: z.infer<typeof descriptorSchema>['resources']): Record<string, number> {
  const rows: Record<string, number> = {}
  for (const { path, rows: count } of resources) {
    if (count === undefined || path.endsWith('.csv.gz')) continue
    const [folder, month] = path.split('/')
    const table = folder?.split('.')[0] ?? ''
    rows[table] = month === undefined ? count : (rows[table] ?? 0) + count
  }
  return rows
}

/**
 * The files in a snapshot's checksums, with their present size; 0 if one is missing.
 * @throws if there are no checksums.
 */
export function readSums(folder: string): PublishedFile[] {
  const sums = readFileSync(join(folder, SUMS_FILE), 'utf8')
  const own = createHash('sha256').update(sums).digest('hex')
  return [...sums.split('\n'), `${own}  ${SUMS_FILE}`].flatMap((line) => {
    const [, sha256, name] = SUMS_LINE.exec(line) ?? []
    if (sha256 === undefined || name === undefined) return []
    return { name, bytes: statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0, sha256 }
  })
}
