/** USAGE_SOURCE, and the ClickHouse server it names: queries over HTTP with pinned settings. Messages contain no password. */
import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { VERSION } from '../contract/version.ts'
import { DataError, isShortage, messageOf } from '../errors.ts'
import { basicAuthorization } from '../program/webhook.ts'

/** The form of USAGE_SOURCE, for messages. */
export const CLUSTER_FORM =
  'clickhouse://user:password@host:port/database?table=usage (port of the HTTP interface; tls=1 for https)'

/** A statement that lasts longer than this many milliseconds is ended. */
const TIMEOUT_MS = 3_600_000

const name = z.string().min(1)
const placeSchema = z.strictObject({ database: name, table: name, tls: z.enum(['0', '1']).optional() })

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
    const database = decodeURIComponent(url.pathname.slice(1))
    const { tls, ...place } = placeSchema.parse({ ...Object.fromEntries(url.searchParams), database })
    return {
      url: `${tls === '1' ? 'https' : 'http'}://${url.hostname}:${url.port || '8123'}`,
      user: decodeURIComponent(url.username) || user,
      password: decodeURIComponent(url.password) || password,
      ...place,
    }
  } catch {
    return undefined
  }
}

/** A limit must throw, since "break" cuts a result off without a word. */
const LIMITS = ['read', 'group_by', 'sort', 'result', 'timeout', 'set', 'join', 'transfer', 'distinct']
const REQUIRED = {
  skip_unavailable_shards: '0',
  read_overflow_mode_leaf: 'throw',
  timeout_overflow_mode_leaf: 'throw',
  ...Object.fromEntries(LIMITS.map((limit) => [`${limit}_overflow_mode`, 'throw'])),
}

/**
 * Sent for users who may change settings; the others can send what their profile has. The server ends a query whose client
 * is gone, however the run ended, if it only reads.
 */
const PREFERRED = {
  readonly: '2',
  cancel_http_readonly_queries_on_client_close: '1',
  fallback_to_stale_replicas_for_distributed_queries: '0',
  log_comment: `app-rankings ${VERSION}`,
}

/** @throws DataError if the server does not answer, or the user's profile may cut results short. */
export async function connectClickHouse({ url, database, user, password }: ClusterAddress) {
  // Loaded only for installations with a cluster. Node's own fetch gives up after five minutes without headers.
  const { request } = await import('undici')
  // A header of its own for the password could not hold every character.
  const headers = { authorization: basicAuthorization(`${user}:${password}`) }
  const timeouts = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS }
  let settings: Readonly<Record<string, string>> = {}

  async function send<T>(sql: string, receive: (body: Readable) => Promise<T>): Promise<T> {
    const parameters = new URLSearchParams({
      ...settings,
      database,
      query_id: `app-rankings-${randomUUID()}`,
      // The status comes with the end of the query, so that an error is never taken for the end of a result.
      wait_end_of_query: '1',
    })
    try {
      const address = `${url}/?${parameters.toString()}`
      const { statusCode, body } = await request(address, { method: 'POST', body: sql, headers, ...timeouts })
      if (statusCode === 200) return await receive(body)
      // Some versions write the error into the JSON of the result.
      const fault = /Code: .*?(?=[.\s]*(?:\(version |$))/s.exec(await text(body))?.[0]
      throw new Error(fault ?? `HTTP status ${statusCode}`)
    } catch (error) {
      if (isShortage(error)) throw error
      throw new DataError(
        `The ClickHouse cluster at ${new URL(url).host} cannot be read: ${messageOf(error) || String(error)}. Nothing is ` +
          'published; see pipeline/README.md#when-one-machine-is-too-small',
        { cause: error },
      )
    }
  }

  /** All rows of a short query. */
  async function rows<T>(sql: string, schema: z.ZodType<T>): Promise<T[]> {
    const reply: unknown = JSON.parse(await send(`${sql} FORMAT JSON`, text))
    return z.object({ data: z.array(schema) }).parse(reply).data
  }

  /** Writes the result of a query to a file, as Parquet. */
  async function save(sql: string, path: string): Promise<void> {
    await send(`${sql} FORMAT Parquet`, (body) => pipeline(body, createWriteStream(path, { flush: true })))
  }

  const profile = z.object({ readonly: z.coerce.number() })
  const [given] = await rows("SELECT getSetting('readonly') AS readonly", profile)
  settings = given?.readonly === 1 ? REQUIRED : { ...REQUIRED, ...PREFERRED }
  return { rows, save }
}
