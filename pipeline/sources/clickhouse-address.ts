/** The address of a ClickHouse cluster in USAGE_SOURCE. */
import { z } from 'zod'

/** What USAGE_SOURCE must look like, for messages. */
export const CLICKHOUSE_FORM =
  'clickhouse://user:password@host:port/database?table=usage&cluster=NAME (port of the HTTP interface; tls=1 for https)'

export type ClickHouseAddress = {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string
  readonly user: string
  readonly password: string
  readonly database: string
  readonly table: string
  /** Set where the table is asked on each shard of a cluster, or the cluster's own name is not told by the table. */
  readonly cluster: string | undefined
}

/** Names that need no quotes in SQL; nothing else is ever put into a statement. */
const name = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/)

const partsSchema = z.object({
  protocol: z.literal('clickhouse:'),
  host: z.string().min(1),
  user: z.string(),
  password: z.string(),
  database: name,
  parameters: z.strictObject({ table: name, cluster: name.optional(), tls: z.enum(['0', '1']).optional() }),
})

const DEFAULT_PORT = 8123

/** The parts of the address; undefined for any other text. */
export function parseClickHouseAddress(address: string): ClickHouseAddress | undefined {
  const url = URL.parse(address)
  if (url === null) return undefined
  const parts = partsSchema.safeParse({
    protocol: url.protocol,
    host: url.hostname,
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1),
    parameters: Object.fromEntries(url.searchParams),
  })
  if (!parts.success) return undefined
  const { host, user, password, database, parameters } = parts.data
  const scheme = parameters.tls === '1' ? 'https' : 'http'
  return {
    url: `${scheme}://${host}:${url.port || DEFAULT_PORT}`,
    user,
    password,
    database,
    table: parameters.table,
    cluster: parameters.cluster,
  }
}
