/**
 * Rebuilds damaged published files from another snapshot with the same file, from the DuckDB file, or from raw/. A file is
 * replaced only by exactly the bytes that were published.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { measureFile } from '../bundle/checksums.ts'
import { describeSnapshot } from '../bundle/description.ts'
import { writeTables, writeTexts } from '../bundle/write-files.ts'
import type { Config } from '../config.ts'
import { asOfFromId } from '../contract/calendar.ts'
import { RAW_FOLDER, SNAPSHOTS_FOLDER, SNAPSHOT_FILE } from '../contract/files.ts'
import type { PublishedFile } from '../contract/snapshot-record.ts'
import { literal } from '../duckdb/sql-values.ts'
import { WAREHOUSE_FILE } from '../duckdb/warehouse.ts'
import { messageOf } from '../errors.ts'
import { GATES } from '../run-options.ts'
import { runNightly } from '../run.ts'
import { attachPublished } from '../snapshot/attach.ts'
import { putInPlace } from '../snapshot/durable-file.ts'
import { BUILD_PREFIX, listSnapshots } from '../snapshot/list.ts'
import { recordOf } from '../snapshot/records.ts'
import { brokenFiles } from '../snapshot/verify.ts'
import type { Progress } from '../terminal/progress.ts'

type Repair = {
  /** To the warehouse, under the lock that keeps runs away. */
  readonly connection: DuckDBConnection
  readonly config: Config
  readonly progress: Pick<Progress, 'note'>
}

/** The snapshot to repair. */
type Broken = {
  readonly id: string
  readonly folder: string
  readonly files: readonly PublishedFile[]
  /** An empty folder for the rebuilt files. */
  readonly scratch: string
}

/** Rebuilds the damaged files of a snapshot, each only with its published bytes. */
export async function repairSnapshot(repair: Repair, id: string): Promise<void> {
  const { dataDir } = repair.config
  const snapshots = join(dataDir, SNAPSHOTS_FOLDER)
  const scratch = join(snapshots, `${BUILD_PREFIX}repair-${id}`)
  try {
    for (const remake of [copyTwins, writeFromDatabase, runFromRaw]) {
      const names = new Set(brokenFiles(dataDir, id).map(({ file }) => file))
      if (names.size === 0) return
      const files = (recordOf(dataDir, id)?.files ?? []).filter(({ name }) => names.has(name))
      rmSync(scratch, { recursive: true, force: true })
      mkdirSync(scratch)
      await remakeFiles(repair, remake, { id, folder: join(snapshots, id), files, scratch })
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Rebuilds files; returns their folder. */
type Remake = (repair: Repair, broken: Broken) => string | Promise<string>

async function remakeFiles(repair: Repair, remake: Remake, broken: Broken): Promise<void> {
  try {
    const made = await remake(repair, broken)
    for (const file of broken.files) {
      if (hasFile(made, file)) putInPlace(join(made, file.name), join(broken.folder, file.name))
    }
  } catch (error) {
    repair.progress.note(`${broken.id} could not be repaired this way: ${messageOf(error)}`)
  }
}

function hasFile(folder: string, { name, sha256 }: PublishedFile): boolean {
  return existsSync(join(folder, name)) && measureFile(folder, name).sha256 === sha256
}

/** Copies months from other snapshots that share them. */
function copyTwins({ config: { dataDir } }: Repair, { id, files, scratch }: Broken): string {
  const others = listSnapshots(dataDir).filter((other) => other !== id)
  for (const file of files) {
    const twin = others
      .map((other) => join(dataDir, SNAPSHOTS_FOLDER, other))
      .find((folder) => hasFile(folder, file))
    if (twin === undefined) continue
    mkdirSync(dirname(join(scratch, file.name)), { recursive: true })
    copyFileSync(join(twin, file.name), join(scratch, file.name))
  }
  return scratch
}

async function writeFromDatabase(repair: Repair, { id, folder, files, scratch }: Broken): Promise<string> {
  const { connection, config } = repair
  const asOf = asOfFromId(id)
  if (asOf === undefined || files.some(({ name }) => name === SNAPSHOT_FILE)) return scratch
  await attachPublished(connection, { dataDir: config.dataDir, id, name: 'snapshot' })
  try {
    const description = await describeSnapshot(connection, { asOf, publicUrl: config.publicUrl })
    const tables = await writeTables(connection, description, { folder: scratch, before: undefined })
    writeTexts(description, tables, scratch, folder)
  } finally {
    await connection.run('DETACH snapshot')
  }
  return scratch
}

const SILENT: Progress = { step: () => undefined, finished: () => undefined, note: () => undefined }

/** Repeats that night's run in a separate DATA_DIR, beside the snapshot that was the newest then. */
async function runFromRaw({ connection, config }: Repair, { id, scratch }: Broken): Promise<string> {
  const { dataDir } = config
  const asOf = asOfFromId(id)
  if (asOf === undefined) return scratch
  const [from, to] = [join(dataDir, RAW_FOLDER), join(scratch, RAW_FOLDER)]
  mkdirSync(to)
  // A run writes to the registry (a copy), but only reads usage (a link).
  for (const name of ['apps', 'ATTRIBUTION']) {
    if (existsSync(join(from, name))) cpSync(join(from, name), join(to, name), { recursive: true })
  }
  symlinkSync(join(from, 'usage'), join(to, 'usage'))
  const before = listSnapshots(dataDir).findLast((other) => other < id)
  mkdirSync(join(scratch, SNAPSHOTS_FOLDER))
  if (before !== undefined) {
    symlinkSync(join(dataDir, SNAPSHOTS_FOLDER, before), join(scratch, SNAPSHOTS_FOLDER, before))
  }
  await copyPublishedApps(connection, scratch)
  const dependencies = { now: () => asOf, progress: SILENT }
  await runNightly({ ...config, dataDir: scratch }, dependencies, { accepted: GATES, range: undefined })
  return join(scratch, SNAPSHOTS_FOLDER, id)
}

/** The earlier snapshot's apps in the warehouse decide the causes of restatements. */
async function copyPublishedApps(connection: DuckDBConnection, scratch: string): Promise<void> {
  await connection.run(`ATTACH ${literal(join(scratch, WAREHOUSE_FILE))} AS scratch`)
  await connection.run('CREATE TABLE scratch.published_apps AS FROM published_apps; DETACH scratch')
}
