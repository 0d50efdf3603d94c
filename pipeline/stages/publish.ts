/**
 * The stage publish: makes the checked snapshot the current one. Everything before the rename of the folder can be thrown
 * away, everything after it is whole; the pointer is switched last.
 */
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { snapshotId } from '../contract/calendar.ts'
import { putInPlace, syncToDisk } from '../snapshot/durable-file.ts'
import { pointAt } from '../snapshot/list.ts'
import { recordPublished } from '../snapshot/records.ts'
import type { Run, StageResult } from './stage.ts'

/** Publishes the snapshot in the build folder. */
export async function publish(run: Run): Promise<StageResult> {
  const id = snapshotId(run.asOf)
  for (const name of readdirSync(run.buildFolder, { recursive: true, encoding: 'utf8' })) {
    syncToDisk(join(run.buildFolder, name))
  }
  putInPlace(run.buildFolder, join(run.snapshotsFolder, id))
  recordPublished(run.config.dataDir)
  pointAt(run.config.dataDir, id)
  return {
    summary: `${basename(run.snapshotsFolder)}/${id} is current`,
    facts: { snapshot: id },
    finished: { outcome: 'published', snapshot: id },
  }
}
