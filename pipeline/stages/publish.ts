/**
 * The stage publish: makes the checked snapshot current. Until the rename of its folder everything can be discarded;
 * afterwards it is complete. The pointer is switched last.
 */
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { snapshotId } from '../contract/calendar.ts'
import { putInPlace, syncToDisk } from '../snapshot/durable-file.ts'
import { transaction } from '../duckdb/statements.ts'
import { listSnapshots, pointAt } from '../snapshot/list.ts'
import { recordPublished } from '../snapshot/records.ts'
import type { Run, StageResult } from './stage.ts'

export async function publish(run: Run): Promise<StageResult> {
  const id = snapshotId(run.asOf)
  for (const name of readdirSync(run.buildFolder, { recursive: true, encoding: 'utf8' })) {
    syncToDisk(join(run.buildFolder, name))
  }
  await rememberApps(run, id)
  putInPlace(run.buildFolder, join(run.snapshotsFolder, id))
  recordPublished(run.config.dataDir, id)
  pointAt(run.config.dataDir, id)
  return {
    summary: `${basename(run.snapshotsFolder)}/${id} is current`,
    facts: { snapshot: id },
    finished: { outcome: 'published', snapshot: id },
  }
}

/** Keeps the rows of the newest snapshot too: the next run compares with them if this run is stopped here. */
async function rememberApps({ connection, config }: Run, snapshot: string): Promise<void> {
  const newest = listSnapshots(config.dataDir).at(-1) ?? ''
  await transaction(connection, async () => {
    await connection.run('DELETE FROM published_apps WHERE snapshot <> $1', [newest])
    await connection.run(
      'INSERT INTO published_apps SELECT $1, app_id, canonical_id, published FROM resolved',
      [snapshot],
    )
  })
}
