/**
 * Brings the usage records that chat left on this machine into the table of a ClickHouse cluster (data/clickhouse.sql).
 *
 * At least once: a file is renamed to `_shipping-…`, inserted, and renamed to `_shipped-…` only after the cluster has
 * confirmed all of its rows. What a killed run leaves as `_shipping-…` the next one inserts again. The pipeline counts a
 * request_id once in a day, and a Replicated table drops a block that is repeated row by row.
 *
 * The API may be writing a file meanwhile: it looks after each write whether the file is still in its place, and writes
 * the lines into a new file where it is not (api/chat/records/day-files.ts).
 */
import { createReadStream, globSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { ProgramError } from '../../contract/program.ts'
import { DataError, LockedError } from '../../errors.ts'
import { withFileLock } from '../../registry/file-lock.ts'
import type { ClickHouseAddress } from './address.ts'
import { InsertError, connectClickHouse } from './client.ts'
import type { ClickHouse, InsertTarget } from './client.ts'
import { filledColumns, usageRowOf } from './usage-row.ts'
import type { UsageRow } from './usage-row.ts'

/** Chat's files below DATA_DIR, also those that older versions kept apart for the cluster. */
const RECORD_FILES = '{raw,spool}/usage/date=*/{,_shipping-}chat-*.ndjson'

/** What the names begin with while the file is inserted and afterwards; readers of usage pass over both. */
const SHIPPING = '_shipping-'
const SHIPPED = '_shipped-'
/** Lines that are no records, such as half a line of a process that died. */
const TORN = '_torn-'

/** Rows per insert: some MB. A file is one day, so a shard takes its part of an insert whole or not at all. */
const BLOCK_ROWS = 10_000

/** Milliseconds without a byte from the cluster after which an insert counts as failed. */
const SILENCE_MS = 60_000

/** One shipping at a time over a DATA_DIR: what is `_shipping-` when it begins, a dead one left. */
const LOCK = {
  patienceMs: 600_000,
  busy: (path: string) =>
    new LockedError(`Another process ships usage records, and holds ${path}; run again when it has finished`),
}

/** Lines of the message about files that could not be shipped. */
const FAULTS_SHOWN = 5

export type Shipped = {
  readonly files: number
  readonly records: number
  /** Lines that are no usage records; they are kept in `_torn-…` beside the file. */
  readonly torn: number
}

/**
 * Ships every record file under `dataDir`.
 * @throws DataError when the cluster did not take a file; LockedError while another shipping runs for ten minutes.
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
    // A cluster that does not answer is told of by the first insert.
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
      // The cluster may take other files where it refuses this one.
      if (!(error instanceof InsertError && error.isRefused)) break
    }
  }
  if (faults.length === 0) return shipped
  throw new DataError(faults.slice(0, FAULTS_SHOWN).join('\n'))
}

/** Inserts one file, and puts it aside once all of it is confirmed. */
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

/** The lines of a file that are not empty. Node's readline would also end lines at U+2028, which JSON may hold. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of createReadStream(path, 'utf8')) {
    const lines = `${rest}${String(chunk)}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines.filter((line) => line !== '')
  }
  if (rest !== '') yield rest
}
