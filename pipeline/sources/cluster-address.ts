/** USAGE_SOURCE: the address of a ClickHouse cluster. */
import { z } from 'zod'

/** The form of USAGE_SOURCE, for messages. */
export const CLUSTER_FORM =
  'clickhouse://user:password@host:port/database?table=usage&cluster=NAME (port of the HTTP interface; tls=1 for https)'

const CLICKHOUSE_PORT = '8123'

const name = z.string().regex(/^[^\p{Cc}]+$/u)
const addressSchema = z.object({
  /** `http://host:port` or `https://host:port`. */
  url: z.url(),
  user: z.string(),
  password: z.string(),
  database: name,
  table: name,
  /** Set where the table is on each shard of a cluster, without a Distributed table over it. */
  cluster: name.optional(),
})
const parameterSchema = z.strictObject({
  table: z.string(),
  cluster: z.string().optional(),
  tls: z.enum(['0', '1']).optional(),
})

/** The table of raw usage on a ClickHouse cluster, and its address. */
export type ClusterAddress = z.infer<typeof addressSchema>

/** Parses an address of USAGE_SOURCE; undefined for any other text. */
export function parseClusterAddress(address: string): ClusterAddress | undefined {
  const url = URL.parse(address)
  const parameters = parameterSchema.safeParse(Object.fromEntries(url?.searchParams ?? []))
  if (url?.protocol !== 'clickhouse:' || !parameters.success) return undefined
  const { tls, ...rest } = parameters.data
  return addressSchema.safeParse({
    url: `${tls === '1' ? 'https' : 'http'}://${url.hostname}:${url.port || CLICKHOUSE_PORT}`,
    user: percentDecoded(url.username),
    password: percentDecoded(url.password),
    database: percentDecoded(url.pathname.slice(1)),
    ...rest,
  }).data
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
