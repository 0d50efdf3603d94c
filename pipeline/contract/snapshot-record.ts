/** The permanent record of a published snapshot, which keeps citations checkable (CONTRACT 4.6). */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { daySchema, timeSchema } from './calendar.ts'
import { RECORDS_FOLDER } from './files.ts'

/** Facts, row counts and checksums of a snapshot. They never change; only the two last fields are added later. */
export const snapshotRecordSchema = z.object({
  id: z.string(),
  as_of: timeSchema,
  first_day: daySchema,
  data_through: daySchema,
  version: z.string(),
  days_restated: z.int().nonnegative().describe('Days whose published figures it changed.'),
  publisher: z.string(),
  attribution: z.string().describe('The line to print when the data is reused.'),
  /** Hash of all that decided it; missing in older snapshots. */
  input_fingerprint: z.string().optional(),
  total_requests: z.string().optional().describe('Requests of all days; missing in older snapshots.'),
  total_tokens: z.string().optional().describe('Tokens of all days; missing in older snapshots.'),
  rows: z
    .record(z.string(), z.int().nonnegative())
    .describe('Rows of each table that is published as files.'),
  files: z.array(
    z.object({
      name: z.string(),
      bytes: z.int().nonnegative(),
      sha256: z.string(),
      /** Of a month: with it the next snapshot decides whether it can share the file. */
      fingerprint: z.string().optional(),
    }),
  ),
  /** When its files were removed because of its age. */
  pruned_at: timeSchema.optional(),
  /** When and why it was withdrawn. */
  retracted: z.strictObject({ at: timeSchema, reason: z.string() }).optional(),
})
export type SnapshotRecord = z.infer<typeof snapshotRecordSchema>

/** A published file in the record. */
export type PublishedFile = SnapshotRecord['files'][number]

/** A retraction in the replies of the API. */
export const retractionSchema = z.strictObject({
  id: z.string(),
  as_of: timeSchema,
  reason: z.string(),
  retracted_at: timeSchema,
})
export type Retraction = z.infer<typeof retractionSchema>

/** The retraction of a snapshot; undefined if it was not withdrawn. */
export function retractionIn({ id, as_of, retracted }: SnapshotRecord): Retraction | undefined {
  return retracted && { id, as_of, reason: retracted.reason, retracted_at: retracted.at }
}

/** The record in the folder of a snapshot, written before the snapshot is published; unlisted among its files. */
export const RECORD_FILE = 'record.json'

/** Path of the record that outlives the snapshot. */
export function recordPath(snapshotsFolder: string, id: string): string {
  return join(snapshotsFolder, RECORDS_FOLDER, `${id}.json`)
}

/**
 * The record of a snapshot; undefined if there is none. A run that was killed right after it published has left the one
 * in the snapshot's folder only.
 * @throws if it cannot be read.
 */
export function readRecord(snapshotsFolder: string, id: string): SnapshotRecord | undefined {
  const path = [recordPath(snapshotsFolder, id), join(snapshotsFolder, id, RECORD_FILE)].find((each) =>
    existsSync(each),
  )
  return path === undefined ? undefined : parseRecord(readFileSync(path, 'utf8'))
}

/** @throws if the text is not a record. */
export function parseRecord(text: string): SnapshotRecord {
  return snapshotRecordSchema.parse(JSON.parse(text))
}

/** The fault of a published file that its size shows, as words after its name; undefined if there is none. */
export function sizeFault(folder: string, { name, bytes }: PublishedFile): string | undefined {
  const found = statSync(join(folder, name), { throwIfNoEntry: false })?.size
  if (found === bytes) return undefined
  return found === undefined ? 'is missing' : `has ${found} bytes, but ${bytes} were published`
}

/** The checksum file, which cannot list itself. */
export const SUMS_FILE = 'SHA256SUMS'
