/** The records beside the snapshots: identifiers, retractions, and what was published (CONTRACT 4.6). */
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { asOfFromId } from '../../../pipeline/contract/calendar.ts'
import { RECORDS_FOLDER, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import {
  parseRecord,
  RECORD_FILE,
  retractionIn,
  type Retraction,
  type SnapshotRecord,
} from '../../../pipeline/contract/snapshot-record.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import { LEFT_OUT, type Faults } from './faults.ts'

/** Unreadable files are left out. */
export interface SnapshotRecords {
  /** Identifiers of the snapshots on disk that are not retracted, newest first. */
  ids(): readonly string[]
  /** The withdrawn snapshots, newest first. */
  retractions(): readonly Retraction[]
  /** The retraction of the snapshot with this identifier; undefined without one, or without a readable record. */
  retraction(id: string): Retraction | undefined
  /** Identifiers of all recorded snapshots, newest first. */
  recordedIds(): readonly string[]
  /** The record of the snapshot with this identifier, retained or not; undefined without one. */
  record(id: string): SnapshotRecord | undefined
}

/** The records under `dataDir`; unreadable ones are faults in `faults`. */
export function recordsOf(dataDir: string, faults: Faults): SnapshotRecords {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)

  const read = new Map<string, { readonly version: string; readonly record: SnapshotRecord }>()

  /** Reads a record again only if its file has changed: pages without a key use all of them. */
  function readFile(name: string): SnapshotRecord | undefined {
    return faults.read(join(SNAPSHOTS_FOLDER, name), LEFT_OUT, () => {
      const path = join(folder, name)
      const found = statSync(path, { throwIfNoEntry: false })
      if (found === undefined) return undefined
      const version = `${found.ino} ${found.mtimeMs} ${found.size}`
      const known = read.get(name)
      if (known?.version === version) return known.record
      const parsed = parseRecord(readFileSync(path, 'utf8'))
      read.set(name, { version, record: parsed })
      return parsed
    })
  }

  function record(id: string): SnapshotRecord | undefined {
    // Any text may be requested; only an identifier names a file.
    if (asOfFromId(id) === undefined) return undefined
    return readFile(join(RECORDS_FOLDER, `${id}.json`)) ?? readFile(join(id, RECORD_FILE))
  }

  const recordedIds = () => jsonNames(join(folder, RECORDS_FOLDER))
  const retraction = (id: string) => {
    const found = record(id)
    return found && retractionIn(found)
  }
  return {
    ids: () =>
      namesIn(folder).filter(
        (name) => asOfFromId(name) !== undefined && record(name)?.retracted === undefined,
      ),
    retractions: () => recordedIds().flatMap((id) => retraction(id) ?? []),
    retraction,
    recordedIds,
    record,
  }
}

function jsonNames(folder: string): string[] {
  return namesIn(folder)
    .map((name) => name.replace(/\.json$/, ''))
    .filter((name) => asOfFromId(name) !== undefined)
}

/** Names in a folder, in descending order; empty if the folder does not exist. */
function namesIn(folder: string): string[] {
  return (unlessAbsent(() => readdirSync(folder)) ?? []).toSorted().toReversed()
}
