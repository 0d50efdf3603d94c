/**
 * The stage publish: makes the checked snapshot current. Until the rename of its folder everything can be discarded;
 * afterwards it is complete. The pointer is switched last.
 */
import { readdirSync, statSync, statfsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { snapshotId } from '../contract/calendar.ts'
import { makePublic } from '../contract/files.ts'
import { transaction } from '../duckdb/statements.ts'
import { pluralize } from '../program/terminal.ts'
import { putInPlace, syncToDisk } from '../snapshot/durable-file.ts'
import { listSnapshots, pointAt } from '../snapshot/list.ts'
import { recordPublished } from '../snapshot/records.ts'
import type { Run, StageResult } from './stage.ts'

/** The run warns if fewer further snapshots fit on the disk. */
const NIGHTS_THAT_FIT = 14

/** Makes the snapshot in the build folder public, durable and current. */
export async function publish(run: Run): Promise<StageResult> {
  const id = snapshotId(run.asOf)
  const paths = readdirSync(run.buildFolder, { recursive: true, encoding: 'utf8' }).map((name) =>
    join(run.buildFolder, name),
  )
  for (const path of [run.buildFolder, ...paths]) makePublic(path)
  for (const path of paths) syncToDisk(path)
  // A month that several snapshots share takes its space once.
  const added = paths.map((path) => statSync(path)).filter((file) => file.isFile() && file.nlink === 1)
  await rememberApps(run, id)
  putInPlace(run.buildFolder, join(run.snapshotsFolder, id))
  recordPublished(run.config.dataDir, id)
  pointAt(run.config.dataDir, id)
  warnOfSpace(run, added)
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
    await connection.run('DELETE FROM published_counts WHERE snapshot <> $1', [newest])
    await connection.run(
      'INSERT INTO published_apps SELECT $1, app_id, canonical_id, published FROM resolved',
      [snapshot],
    )
    await connection.run(
      `INSERT INTO published_counts SELECT $1, day, content_hash, getvariable('rules') FROM days
       WHERE day <= getvariable('last_day')`,
      [snapshot],
    )
  })
}

function warnOfSpace({ config, progress }: Run, added: readonly { readonly size: number }[]): void {
  const { bavail, bsize } = statfsSync(config.dataDir)
  const bytes = added.reduce((sum, { size }) => sum + size, 0)
  const nights = Math.floor((bavail * bsize) / bytes)
  if (nights >= NIGHTS_THAT_FIT) return
  progress.note(
    `The disk has room for ${pluralize(nights, 'more snapshot')} of ${(bytes / 1e6).toFixed(1)} MB: set RETENTION_DAYS, so that each ` +
      'run removes old ones, or lower it, or free space',
  )
}
