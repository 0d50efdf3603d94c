/** USAGE_SOURCE, and the ClickHouse server it names: queries over HTTP with pinned settings. Messages contain no password. */
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { VERSION } from '../contract/version.ts'
import { DataError, firstLineOf, messageOf } from '../errors.ts'

/** The form of USAGE_SOURCE, for messages. */
export const CLUSTER_FORM =
  'clickhouse://user:password@host:port/database?table=usage (port of the HTTP interface; tls=1 for https)'

const CLICKHOUSE_PORT = '8123'

/** A statement that lasts longer than this many milliseconds is ended. */
const TIMEOUT_MS = 3_600_000

const name = z.string().regex(/^[^\p{Cc}]+$/u)
const placeSchema = z.strictObject({
  database: name,
  table: name,
  tls: z.enum(['0', '1']).optional(),
})

/** The table of raw usage on a ClickHouse cluster, and the origin (`url`) of the server to query. */
export type ClusterAddress = NonNullable<ReturnType<typeof parseClusterAddress>>

/**
 * Parses USAGE_SOURCE; undefined for any text of another form. A `%` in a password must be written as %25.
 * @param user and password, if the address has none.
 */
export function parseClusterAddress(address: string, user = 'default', password = '') {
  const url = URL.parse(address)
  if (url?.protocol !== 'clickhouse:') return undefined
  try {
    const { database, table, tls } = placeSchema.parse({
      ...Object.fromEntries(url.searchParams),
      database: decodeURIComponent(url.pathname.slice(1)),
    })
    return {
      url: `${tls === '1' ? 'https' : 'http'}://${url.hostname}:${url.port || CLICKHOUSE_PORT}`,
      user: decodeURIComponent(url.username) || user,
      password: decodeURIComponent(url.password) || password,
      database,
      table,
    }
  } catch {
    return undefined
  }
}

export type ClickHouse = {
  /** All rows of a short query. */
  readonly rows: <T>(sql: string, schema: z.ZodType<T>) => Promise<T[]>
  /** Writes the result of a query to a file, as Parquet. */
  readonly save: (sql: string, path: string) => Promise<void>
}

/** A limit must throw, since "break" cuts a result off without a word. */
const LIMITS = ['read', 'group_by', 'sort', 'result', 'timeout', 'set', 'join', 'transfer', 'distinct']
const REQUIRED = {
  skip_unavailable_shards: '0',
  read_overflow_mode_leaf: 'throw',
  timeout_overflow_mode_leaf: 'throw',
  ...Object.fromEntries(LIMITS.map((limit) => [`${limit}_overflow_mode`, 'throw'])),
}

/** Sent for users who may change settings. */
const PREFERRED = {
  fallback_to_stale_replicas_for_distributed_queries: '0',
  log_comment: `app-rankings ${VERSION}`,
}

/**
 * Connects, and pins the settings of every query. A user who may change no setting can send those that the profile has.
 * @throws DataError if the server does not answer, or the user's profile may cut results short.
 */
export async function connectClickHouse(address: ClusterAddress): Promise<ClickHouse> {
  let settings: Readonly<Record<string, string>> = { ...REQUIRED, ...PREFERRED }

  async function send<T>(sql: string, receive: (reply: Dispatcher.ResponseData) => Promise<T>): Promise<T> {
    const query_id = randomUUID()
    // The status comes with the end of the query, so that an error is never taken for the end of a result.
    const parameters = { ...settings, database: address.database, query_id, wait_end_of_query: '1' }
    try {
      return await receive(await post(address, sql, parameters))
    } catch (error) {
      const kill = post(address, `KILL QUERY WHERE query_id = '${query_id}' ASYNC`, {})
      await kill.then(({ body }) => body.dump()).catch(() => undefined)
      throw describeFault(address, error)
    }
  }

  const server: ClickHouse = {
    rows: (sql, schema) =>
      send(`${sql} FORMAT JSONEachRow`, async ({ body }) => {
        const lines = (await text(body)).split('\n')
        return lines.filter((line) => line !== '').map((line) => schema.parse(JSON.parse(line)))
      }),
    save: (sql, path) =>
      send(`${sql} FORMAT Parquet`, ({ body }) => pipeline(body, createWriteStream(path, { flush: true }))),
  }
  try {
    await server.rows('SELECT 1', z.unknown())
  } catch (error) {
    if (!messageOf(error).includes('(READONLY)')) throw error
    settings = REQUIRED
    await server.rows('SELECT 1', z.unknown())
  }
  return server
}

/** @throws Error with the server's own words, or the fault of the connection. */
async function post(
  { url, user, password }: ClusterAddress,
  sql: string,
  parameters: Readonly<Record<string, string>>,
): Promise<Dispatcher.ResponseData> {
  // Loaded only for installations with a cluster.
  const { request } = await import('undici')
  const response = await request(`${url}/?${new URLSearchParams(parameters).toString()}`, {
    method: 'POST',
    body: sql,
    headers: { 'x-clickhouse-user': user, 'x-clickhouse-key': password },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  })
  if (response.statusCode === 200) return response
  throw new Error(await text(response.body))
}

/** Remedies, by the words of the server and of Node. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /AUTHENTICATION_FAILED|REQUIRED_PASSWORD/,
    'correct the user and the password, in USAGE_SOURCE or in USAGE_SOURCE_USER and USAGE_SOURCE_PASSWORD',
  ],
  [/READONLY/, "set it so in the user's profile: another value may cut results short"],
  [/ACCESS_DENIED|UNKNOWN_/, 'data/clickhouse.sql has the table and the rights of the user'],
  [/TOO_MANY_ROWS|TIMEOUT_EXCEEDED|LIMIT_EXCEEDED/, "raise the limit in the user's profile"],
  [/^Code: /, 'run again when every shard answers'],
  [
    /./,
    'run again when it is up; USAGE_SOURCE must name host and port of its HTTP interface (8123 as a rule, 8443 with tls=1; ' +
      'NODE_EXTRA_CA_CERTS names the certificate of a private authority)',
  ],
]

function describeFault({ url, password }: ClusterAddress, error: unknown): DataError {
  const words = firstLineOf(error) || String(error)
  const reason = (password === '' ? words : words.replaceAll(password, '***')).replace(
    /[.\s]*(?:\(version [^)]*\))?[.\s]*$/,
    '',
  )
  const remedy = REMEDIES.find(([pattern]) => pattern.test(reason))?.[1]
  return new DataError(
    `The ClickHouse cluster at ${new URL(url).host} cannot be read: ${reason}. Nothing is published; ${remedy}`,
    { cause: error },
  )
}
