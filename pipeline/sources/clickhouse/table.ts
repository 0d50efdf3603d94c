/** The table of raw usage on a cluster: how to query it, where its parts lie, how to read its columns. */
import { z } from 'zod'
import type { ClickHouseAddress } from './address.ts'
import { DataError } from '../../errors.ts'
import type { ClickHouse } from './client.ts'
import { USAGE_COLUMNS, namesFor } from '../columns.ts'

export type ClickHouseTable = {
  /** Its name in the quarantine and in messages. */
  readonly name: string
  /** Table expression over every shard. */
  readonly everywhere: string
  /** Table expression for the data parts of every shard. */
  readonly parts: string
  /** Whether rows may name their app by a text. */
  readonly isNamed: boolean
  /** Column expressions in the form of queries.ts. */
  readonly columns: Readonly<
    Record<
      | 'app_id'
      | 'app'
      | 'prompt'
      | 'completion'
      | 'requests'
      | 'request_id'
      | 'model'
      | 'reasoning'
      | 'cached'
      | 'provider',
      string
    >
  >
}

const tableRow = z.object({ engine: z.string(), engine_full: z.string(), partition_key: z.string() })
const columnRow = z.object({ name: z.string(), type: z.string() })
const zoneRow = z.object({ zone: z.string() })

const DISTRIBUTED = /^Distributed\('?(\w+)'?, '?(\w+)'?, '?(\w+)'?[,)]/
const BY_DAY = /^(?:toYYYYMMDD|toDate)\(ts(?:, '(?:Etc\/)?UTC')?\)$/
const TIME = /^DateTime(?:64\(\d+(?:, '([^']+)')?\)|\('([^']+)'\))?$/
const INTEGER = /^(?:Nullable\()?U?Int(?:8|16|32|64)\)?$/
const TEXT = /^(?:LowCardinality\()?(?:Nullable\()?(?:String|FixedString\(\d+\)|UUID)\)*$/
const UTC = /^(?:Etc\/)?UTC$/

const EXAMPLE = 'see data/clickhouse.sql'

/**
 * Inspects the table.
 * @throws DataError with the requirement that the table does not meet.
 */
export async function inspectTable(
  clickHouse: ClickHouse,
  { database, table, cluster }: ClickHouseAddress,
): Promise<ClickHouseTable> {
  const name = `clickhouse:${database}.${table}`
  const asked = await readEngine(clickHouse, database, table)
  const [, ownCluster = '', localDatabase = '', localTable = ''] = DISTRIBUTED.exec(asked.engine_full) ?? []
  const isDistributed = asked.engine === 'Distributed'
  const local = isDistributed ? { database: localDatabase, table: localTable } : { database, table }
  const shards = isDistributed ? (cluster ?? ownCluster) : cluster
  requireDays(name, isDistributed ? await readEngine(clickHouse, local.database, local.table) : asked)
  const columns = await readColumns(clickHouse, { database, table, name })
  const onShards = (inner: string) => (shards === undefined ? inner : `cluster('${shards}', ${inner})`)
  return {
    name,
    everywhere: isDistributed ? `${database}.${table}` : onShards(`${database}.${table}`),
    parts: `(SELECT * FROM ${onShards('system.parts')} WHERE active AND database = '${local.database}' AND table = '${local.table}')`,
    isNamed: columns.app !== "''",
    columns,
  }
}

function requireDays(name: string, { engine, partition_key }: z.infer<typeof tableRow>): void {
  if (!engine.endsWith('MergeTree')) {
    throw new DataError(`${name} is a ${engine}: expected a MergeTree, or a Distributed over one; ${EXAMPLE}`)
  }
  if (BY_DAY.test(partition_key)) return
  throw new DataError(
    `${name} is partitioned by ${partition_key || 'nothing'}: it must be by UTC day, PARTITION BY toYYYYMMDD(ts), ` +
      'so that unchanged days need not be counted again',
  )
}

async function readEngine(clickHouse: ClickHouse, database: string, table: string) {
  const [row] = await clickHouse.readAll(
    `SELECT engine, engine_full, partition_key FROM system.tables WHERE database = '${database}' AND name = '${table}'`,
    tableRow,
  )
  if (row !== undefined) return row
  throw new DataError(
    `There is no table ${database}.${table} on the ClickHouse cluster that the user may see; ${EXAMPLE}`,
  )
}

async function readColumns(
  clickHouse: ClickHouse,
  { database, table, name }: { database: string; table: string; name: string },
): Promise<ClickHouseTable['columns']> {
  const rows = await clickHouse.readAll(
    `SELECT name, type FROM system.columns WHERE database = '${database}' AND table = '${table}'`,
    columnRow,
  )
  const types = new Map(rows.map((row) => [row.name, row.type]))
  const missing = USAGE_COLUMNS.required.filter(
    (column) => !namesFor(USAGE_COLUMNS, column).some((other) => types.has(other)),
  )
  if (missing.length > 0) throw new DataError(`${name} has no column ${missing.join(', ')}; ${EXAMPLE}`)
  await requireUtc(clickHouse, name, types.get('ts') ?? '')
  const integer = (column: string) => requireType(name, column, types.get(column), INTEGER)
  const text = (column: string) => {
    const found = requireType(name, column, types.get(column), TEXT)
    return found && `ifNull(toString(${found}), '')`
  }
  const app = text('app')
  const id = integer('app_id')
  // Descriptive columns of unsuitable types count as unknown.
  const described = (column: string, allowed: RegExp) =>
    allowed.test(types.get(column) ?? '') ? column : 'NULL'
  return {
    app_id: app === undefined ? (id ?? 'NULL') : id === undefined ? 'toInt64(0)' : `ifNull(${id}, 0)`,
    app: app === undefined ? "''" : id === undefined ? app : `if(isNull(${id}), ${app}, '')`,
    prompt: integer('prompt_tokens') ?? 'NULL',
    completion: integer('completion_tokens') ?? 'NULL',
    requests: integer('requests') ?? '1',
    request_id: text('request_id') ?? "''",
    model: described('model', TEXT),
    reasoning: described('reasoning_tokens', INTEGER),
    cached: described('cached_tokens', INTEGER),
    provider: described('provider', TEXT),
  }
}

async function requireUtc(clickHouse: ClickHouse, name: string, type: string): Promise<void> {
  const match = TIME.exec(type)
  if (match === null)
    throw new DataError(`${name}: the column ts is of type ${type}: expected DateTime('UTC')`)
  const [server] = await clickHouse.readAll('SELECT timezone() AS zone', zoneRow)
  const zone = match[1] ?? match[2] ?? server?.zone ?? ''
  if (UTC.test(zone)) return
  throw new DataError(`${name}: the column ts is in the time zone ${zone}: expected DateTime('UTC')`)
}

function requireType(
  name: string,
  column: string,
  type: string | undefined,
  allowed: RegExp,
): string | undefined {
  if (type === undefined || allowed.test(type)) return type && column
  throw new DataError(`${name}: the column ${column} is of type ${type}, which cannot hold it`)
}
