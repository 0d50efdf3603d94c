/** The record of the snapshot in the build folder: its facts, and every file with its checksum (CONTRACT 4.6). */
import { SUMS_FILE } from '../contract/snapshot-record.ts'
import type { PublishedFile, SnapshotRecord } from '../contract/snapshot-record.ts'
import { measureFile } from './checksums.ts'
import type { Description } from './description.ts'

/** @param files the files that the checksums in `folder` list; a month has its fingerprint. */
export function recordOfBundle(
  { snapshot: id, meta, tables }: Description,
  files: readonly PublishedFile[],
  folder: string,
): SnapshotRecord {
  const listed: readonly PublishedFile[] = [...files, measureFile(folder, SUMS_FILE)]
  return {
    id,
    as_of: meta.as_of,
    first_day: meta.first_day,
    data_through: meta.data_through,
    version: meta.version,
    days_restated: meta.days_restated,
    publisher: meta.publisher,
    attribution: meta.attribution,
    input_fingerprint: meta.input_fingerprint,
    total_requests: meta.total_requests,
    total_tokens: meta.total_tokens,
    rows: Object.fromEntries(tables.map(({ name, rows }) => [name, rows])),
    files: listed.map(({ name, bytes, sha256, fingerprint }) => ({
      name,
      bytes,
      sha256,
      ...(fingerprint !== undefined && { fingerprint }),
    })),
  }
}
