/** Parses the address of a ClickHouse cluster in USAGE_SOURCE. */
import { z } from 'zod'

/** The form of USAGE_SOURCE, for messages. */
export const CLUSTER_FORM =
  'clickhouse://user:password@host:port/database?table=usage&cluster=NAME (port of the HTTP interface; tls=1 for https)'

/** The table of raw usage on a ClickHouse cluster, and its address. */
export type ClusterAddress = {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string
  readonly user: string
  readonly password: string
  readonly database: string
  readonly table: string
  /** Set where the table is on each shard of a cluster, without a Distributed table over it. */
  readonly cluster: string | undefined
}

/** A name, which is quoted in every statement. */
const clickHouseName = z.string().regex(/^[^\p{Cc}]+$/u)

const addressSchema = z.object({
  protocol: z.literal('clickhouse:'),
  host: z.string().min(1),
  user: z.string(),
  password: z.string(),
  database: clickHouseName,
  parameters: z.strictObject({
    table: clickHouseName,
    cluster: clickHouseName.optional(),
    tls: z.enum(['0', '1']).optional(),
  }),
})

const CLICKHOUSE_PORT = 8123

/** Parses an address of USAGE_SOURCE; undefined for any other text. */
export function parseClusterAddress(address: string): ClusterAddress | undefined {
  const url = URL.parse(address)
  if (url === null) return undefined
  const parts = addressSchema.safeParse({
    protocol: url.protocol,
    host: url.hostname,
    user: percentDecoded(url.username),
    password: percentDecoded(url.password),
    database: percentDecoded(url.pathname.slice(1)),
    parameters: Object.fromEntries(url.searchParams),
  })
  if (!parts.success) return undefined
  const { host, user, password, database, parameters } = parts.data
  const scheme = parameters.tls === '1' ? 'https' : 'http'
  return {
    url: `${scheme}://${host}:${url.port || CLICKHOUSE_PORT}`,
    user,
    password,
    database,
    table: parameters.table,
    cluster: parameters.cluster,
  }
}

/** Undefined for a `%` without two hex digits: a password must write it as %25. */
function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The cluster of these settings; the address is completed from the settings for credentials. */
export function clusterOf(settings: {
  readonly USAGE_SOURCE: string
  readonly USAGE_SOURCE_USER?: string | undefined
  readonly USAGE_SOURCE_PASSWORD?: string | undefined
}): ClusterAddress | undefined {
  const address = parseClusterAddress(settings.USAGE_SOURCE)
  return (
    address && {
      ...address,
      user: address.user || (settings.USAGE_SOURCE_USER ?? 'default'),
      password: address.password || (settings.USAGE_SOURCE_PASSWORD ?? ''),
    }
  )
}
