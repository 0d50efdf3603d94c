/**
 * Inserts the usage records of chat on this machine into the table of a ClickHouse cluster (data/clickhouse.sql).
 *
 * At least once: a file is renamed to `_shipping-…`, inserted, and renamed to `_shipped-…` once the cluster has confirmed
 * all of its rows. After a kill the next run inserts a `_shipping-…` file again. The pipeline counts a request_id once per
 * day, and a Replicated table drops repeated blocks.
 *
 * The API may be writing the file meanwhile: after each write it checks whether the file was renamed, and repeats the lines
 * in a new file if so (api/chat/records/day-files.ts).
 */
import { createReadStream, globSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { ProgramError } from '../../program/program.ts'
import { DataError, LockedError } from '../../errors.ts'
import { withFileLock } from '../../registry/file-lock.ts'
import type { ClickHouseAddress } from './address.ts'
import { InsertError, connectClickHouse } from './client.ts'
import type { ClickHouse, InsertTarget } from './client.ts'
import { filledColumns, usageRowOf } from './usage-row.ts'
import type { UsageRow } from './usage-row.ts'

/** Chat's files below DATA_DIR, including a folder of older versions. */
const RECORD_FILES = '{raw,spool}/usage/date=*/{,_shipping-}chat-*.ndjson'

/** Prefixes of a file's name during and after its insert; readers of usage skip both. */
const SHIPPING = '_shipping-'
const SHIPPED = '_shipped-'
/** Prefix for lines that are not records, such as half a line of a killed process. */
const TORN = '_torn-'

/** Rows per insert: some MB. A file holds one day, so each shard takes its part of an insert whole or not at all. */
const BLOCK_ROWS = 10_000

/** Silence of the cluster in milliseconds after which an insert has failed. */
const SILENCE_MS = 60_000

/** One shipping at a time per DATA_DIR: any file named `_shipping-` at its start was left by a killed one. */
const LOCK = {
  patienceMs: 600_000,
  busy: (path: string) =>
    new LockedError(`Another process ships usage records, and holds ${path}; run again when it has finished`),
}

/** Most files in an error message. */
const FAULTS_SHOWN = 5

export type Shipped = {
  readonly files: number
  readonly records: number
  /** Lines that are not usage records; they are kept in `_torn-…` beside the file. */
  readonly torn: number
}

/**
 * Ships every file of records under `dataDir`.
 * @throws DataError if the cluster did not take a file; LockedError if another shipping runs for ten minutes.
 */
export async function shipRecords(dataDir: string, address: ClickHouseAddress): Promise<Shipped> {
  if (recordFiles(dataDir).length === 0) return { files: 0, records: 0, torn: 0 }
  return await withFileLock(join(dataDir, '.ship.lock'), LOCK, async () => {
    const clickHouse = connectClickHouse(address, SILENCE_MS)
    try {
      return await shipFiles(clickHouse, await targetOf(clickHouse, address), recordFiles(dataDir))
    } finally {
      await clickHouse.close()
    }
  })
}

async function targetOf(
  clickHouse: ClickHouse,
  { database, table }: ClickHouseAddress,
): Promise<InsertTarget> {
  const found = await clickHouse
    .readAll(
      `SELECT name FROM system.columns WHERE database = '${database}' AND table = '${table}'`,
      z.object({ name: z.string() }),
    )
    // If the cluster does not answer, the first insert reports it.
    .catch(() => [])
  return { table: `${database}.${table}`, columns: filledColumns(found.map(({ name }) => name)) }
}

/** Paths of the files, oldest day first. */
function recordFiles(dataDir: string): string[] {
  return globSync(RECORD_FILES, { cwd: dataDir })
    .toSorted()
    .map((path) => join(dataDir, path))
}

async function shipFiles(
  clickHouse: ClickHouse,
  target: InsertTarget,
  paths: readonly string[],
): Promise<Shipped> {
  const shipped = { files: 0, records: 0, torn: 0 }
  const faults: string[] = []
  for (const path of paths) {
    try {
      const { records, torn } = await shipFile(clickHouse, target, path)
      shipped.files += 1
      shipped.records += records
      shipped.torn += torn
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error
      faults.push(`${basename(dirname(path))}/${basename(path)}: ${error.message}`)
      // A rejected file does not stop the others.
      if (!(error instanceof InsertError && error.isRefused)) break
    }
  }
  if (faults.length === 0) return shipped
  throw new DataError(faults.slice(0, FAULTS_SHOWN).join('\n'))
}

/** Inserts one file, and renames it once all rows are confirmed. */
async function shipFile(
  clickHouse: ClickHouse,
  target: InsertTarget,
  path: string,
): Promise<{ records: number; torn: number }> {
  const folder = dirname(path)
  const name = basename(path).replace(SHIPPING, '')
  const claimed = join(folder, SHIPPING + name)
  if (path !== claimed) renameSync(path, claimed)
  const torn: string[] = []
  let block: UsageRow[] = []
  let records = 0

  const insertBlock = async () => {
    if (block.length === 0) return
    const filled = ([column]: [string, unknown]) => target.columns.includes(column)
    await clickHouse.insert(
      target,
      block.map((row) => Object.fromEntries(Object.entries(row).filter(filled))),
    )
    records += block.length
    block = []
  }

  for await (const line of linesOf(claimed)) {
    const row = usageRowOf(line)
    if (row === undefined) torn.push(line)
    else block.push(row)
    if (block.length === BLOCK_ROWS) await insertBlock()
  }
  await insertBlock()
  if (torn.length > 0) writeFileSync(join(folder, TORN + name), torn.join('\n'), { flag: 'a', flush: true })
  renameSync(claimed, join(folder, SHIPPED + name))
  return { records, torn: torn.length }
}

/** The non-empty lines of a file. Node's readline would also split at U+2028, which JSON may contain. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of createReadStream(path, 'utf8')) {
    const lines = `${rest}${String(chunk)}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines.filter((line) => line !== '')
  }
  if (rest !== '') yield rest
}
