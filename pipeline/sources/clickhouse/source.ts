/**
 * Usage counted by a ClickHouse cluster: the shards group raw rows by day, app and model, and the run fetches the counts.
 * Rejected rows and duplicates are the same as for files.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { ClickHouseAddress } from './address.ts'
import { DataError } from '../../errors.ts'
import { dateValue } from '../../duckdb/sql-values.ts'
import { execute } from '../../duckdb/statements.ts'
import { withAppender } from '../../duckdb/appender.ts'
import { UNATTRIBUTED_APP_ID } from '../../contract/dataset.ts'
import { appNamed } from '../../contract/app-identity.ts'
import { nameApps } from '../named-apps.ts'
import { connectClickHouse } from './client.ts'
import type { ClickHouse } from './client.ts'
import {
  conflictsQuery,
  countQuery,
  joinHalves,
  namesQuery,
  partsQuery,
  providersQuery,
  rejectsQuery,
  repeatedQuery,
  suspicionQuery,
  winnersQuery,
} from './queries.ts'
import { inspectTable } from './table.ts'
import type { ClickHouseTable } from './table.ts'
import type { SourceDay, UsageSource } from '../usage-source.ts'

const partRow = z.object({
  partition: z.string(),
  name: z.string(),
  row_count: z.string(),
  modified: z.string(),
})
const countRow = z.object({
  app_text: z.string().nullable(),
  name_text: z.string(),
  model_text: z.string(),
  row_count: z.string(),
  without_tokens: z.string(),
  request_sum: z.string(),
  prompt_high: z.string(),
  prompt_low: z.string(),
  completion_high: z.string(),
  completion_low: z.string(),
  reasoning_high: z.string(),
  reasoning_low: z.string(),
  cached_high: z.string(),
  cached_low: z.string(),
})
type CountRow = z.infer<typeof countRow>
const nameRow = z.object({ name_text: z.string() })
const providerRow = z.object({
  provider_text: z.string(),
  request_sum: z.string(),
  unknown_sum: z.string(),
  failed_count: z.string(),
})
const suspicionRow = z.object({ suspicious: z.number() })
const conflictsRow = z.object({ conflicts: z.string() })
const rejectRow = z.object({
  reason: z.string(),
  ts_text: z.string(),
  app_text: z.string().nullable(),
  prompt_text: z.string().nullable(),
  completion_text: z.string().nullable(),
  requests_text: z.string().nullable(),
  id: z.string(),
})

/** Temporary tables for counts, all with the same columns. */
type CountTable = 'counted' | 'repeated' | 'winners'

export function openClickHouse(address: ClickHouseAddress): UsageSource {
  const clickHouse = connectClickHouse(address)
  let inspected: Promise<ClickHouseTable> | undefined
  const table = () => (inspected ??= inspectTable(clickHouse, address))
  return {
    listDays: async () => await listDays(clickHouse, await table()),
    async countDays(connection, days) {
      await execute(connection, 'load/cluster-tables.sql')
      await execute(connection, 'load.sql#provider-counts')
      const { isNamed } = await table()
      for (const { day } of days) {
        if (isNamed) await pullNames(connection, clickHouse, namesQuery(await table(), day))
        const counts = clickHouse.read(countQuery(await table(), day), countRow)
        await pullCounts(connection, 'counted', day, counts)
        await pullProviders(connection, clickHouse, await table(), day)
        await pullRejects(connection, clickHouse, await table(), day)
        await pullDuplicates(connection, clickHouse, await table(), day)
      }
      if (isNamed) await execute(connection, 'load/cluster-named.sql')
    },
    close: () => clickHouse.close(),
  }
}

async function listDays(clickHouse: ClickHouse, table: ClickHouseTable): Promise<SourceDay[]> {
  const byDay = new Map<string, string[]>()
  for await (const { partition, name, row_count, modified } of clickHouse.read(partsQuery(table), partRow)) {
    const day = dayOf(partition, table)
    byDay.set(day, [...(byDay.get(day) ?? []), `${name} ${row_count} ${modified}`])
  }
  return [...byDay].map(([day, parts]) => ({
    day,
    fingerprint: `${table.name} ${createHash('sha256').update(parts.join('\n')).digest('hex')}`,
    parts,
  }))
}

/** Partitions are named 20260105 or 2026-01-05. */
function dayOf(partition: string, table: ClickHouseTable): string {
  const [, year, month, date] = /^'?(\d{4})-?(\d{2})-?(\d{2})'?$/.exec(partition) ?? []
  if (year === undefined)
    throw new DataError(`${table.name} has a partition "${partition}", which is not a day`)
  return `${year}-${month}-${date}`
}

/** Keeps the first text that names an app. */
async function pullNames(connection: DuckDBConnection, clickHouse: ClickHouse, query: string): Promise<void> {
  const names = await clickHouse.readAll(query, nameRow)
  await nameApps(
    connection,
    names.map(({ name_text }) => name_text),
  )
  await execute(connection, 'load/app-names.sql')
}

/** A text that identifies no app counts as app 0. */
function appOf({ app_text, name_text }: CountRow): bigint | undefined {
  if (name_text !== '') return BigInt(appNamed(name_text)?.app_id ?? UNATTRIBUTED_APP_ID)
  return app_text === null ? undefined : BigInt(app_text)
}

async function pullCounts(
  connection: DuckDBConnection,
  target: CountTable,
  day: string,
  rows: AsyncGenerator<CountRow>,
): Promise<void> {
  await withAppender(connection, target, async (appender) => {
    for await (const row of rows) {
      appender.appendDate(dateValue(day))
      const app = appOf(row)
      if (app === undefined) appender.appendNull()
      else appender.appendBigInt(app)
      if (row.model_text === '') appender.appendNull()
      else appender.appendVarchar(row.model_text)
      appender.appendBigInt(BigInt(row.row_count))
      appender.appendBigInt(BigInt(row.without_tokens))
      appender.appendBigInt(BigInt(row.request_sum))
      appender.appendHugeInt(joinHalves(row.prompt_high, row.prompt_low))
      appender.appendHugeInt(joinHalves(row.completion_high, row.completion_low))
      appender.appendHugeInt(joinHalves(row.reasoning_high, row.reasoning_low))
      appender.appendHugeInt(joinHalves(row.cached_high, row.cached_low))
      appender.endRow()
    }
  })
}

async function pullProviders(
  connection: DuckDBConnection,
  clickHouse: ClickHouse,
  table: ClickHouseTable,
  day: string,
): Promise<void> {
  await withAppender(connection, 'provider_counts', async (appender) => {
    for await (const row of clickHouse.read(providersQuery(table, day), providerRow)) {
      appender.appendDate(dateValue(day))
      if (row.provider_text === '') appender.appendNull()
      else appender.appendVarchar(row.provider_text)
      appender.appendBigInt(BigInt(row.request_sum))
      appender.appendBigInt(BigInt(row.unknown_sum))
      appender.appendBigInt(BigInt(row.failed_count))
      appender.endRow()
    }
  })
}

async function pullDuplicates(
  connection: DuckDBConnection,
  clickHouse: ClickHouse,
  table: ClickHouseTable,
  day: string,
): Promise<void> {
  const [answer] = await clickHouse.readAll(suspicionQuery(table, day), suspicionRow)
  if (answer?.suspicious === 1) {
    await pullCounts(connection, 'repeated', day, clickHouse.read(repeatedQuery(table, day), countRow))
    await pullCounts(connection, 'winners', day, clickHouse.read(winnersQuery(table, day), countRow))
    const [found] = await clickHouse.readAll(conflictsQuery(table, day), conflictsRow)
    await connection.run('INSERT INTO conflicting VALUES ($1, $2)', [
      dateValue(day),
      BigInt(found?.conflicts ?? 0),
    ])
  }
}

async function pullRejects(
  connection: DuckDBConnection,
  clickHouse: ClickHouse,
  table: ClickHouseTable,
  day: string,
): Promise<void> {
  let row = 0n
  await withAppender(connection, 'rejected_rows', async (appender) => {
    for await (const reject of clickHouse.read(rejectsQuery(table, day), rejectRow)) {
      row += 1n
      appender.appendDate(dateValue(day))
      appender.appendVarchar(table.name)
      appender.appendBigInt(row)
      appender.appendVarchar(reject.reason)
      appender.appendVarchar(payloadOf(reject))
      appender.appendBigInt(1n)
      appender.endRow()
    }
  })
}

function payloadOf(reject: z.infer<typeof rejectRow>): string {
  return JSON.stringify({
    ts: reject.ts_text,
    app_id: reject.app_text,
    prompt_tokens: reject.prompt_text,
    completion_tokens: reject.completion_text,
    requests: reject.requests_text,
    request_id: reject.id,
  })
}
