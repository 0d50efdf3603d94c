/** A ClickHouse server over HTTP: sends queries with pinned settings; its messages contain no credentials. */
import { createWriteStream } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { text } from 'node:stream/consumers'
import { request } from 'undici'
import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { DataError, firstLineOf } from '../errors.ts'
import { VERSION } from '../contract/version.ts'
import type { ClusterAddress } from './cluster-address.ts'

export type ClickHouse = {
  /** All rows of a short query. */
  readonly rows: <T>(sql: string, schema: z.ZodType<T>) => Promise<T[]>
  /** Writes the result of a query to a file, as Parquet. */
  readonly save: (sql: string, path: string) => Promise<void>
}

/** A statement that lasts longer than this many milliseconds is ended. */
const TIMEOUT_MS = 3_600_000

/** The oldest version with every setting and table column that a pull needs. */
const OLDEST_VERSION = 24.8

/** Settings for users who may change them. */
const PREFERRED: Readonly<Record<string, string>> = {
  fallback_to_stale_replicas_for_distributed_queries: '0',
  log_comment: `app-rankings ${VERSION}`,
}

/** Remedies, by the words of the server and of Node. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /Authentication failed|AUTHENTICATION_FAILED|REQUIRED_PASSWORD/,
    'correct the user and the password, in USAGE_SOURCE or in USAGE_SOURCE_USER and USAGE_SOURCE_PASSWORD',
  ],
  [/ACCESS_DENIED|Not enough privileges/, 'grant the user what data/clickhouse.sql lists'],
  [/UNKNOWN_TABLE|UNKNOWN_DATABASE|UNKNOWN_IDENTIFIER/, 'make the table as in data/clickhouse.sql'],
  [/CLUSTER_DOESNT_EXIST|Requested cluster/, 'correct the cluster that USAGE_SOURCE names'],
  [/TOO_MANY_ROWS|TIMEOUT_EXCEEDED|LIMIT_EXCEEDED/, "raise the limit in the user's profile"],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EPROTO|Parse Error|SSL|certificate/i,
    'run again when it is up; USAGE_SOURCE must name host and port of its HTTP interface (8123 as a rule, 8443 with ' +
      'tls=1; NODE_EXTRA_CA_CERTS names the certificate of a private authority)',
  ],
  [/./, 'run again when every shard answers'],
]

const serverRow = z.object({ version: z.string() })
const settingRow = z.object({ name: z.string(), value: z.string(), is_fixed: z.coerce.boolean() })

/**
 * Connects and pins the settings of every later query.
 * @throws DataError when the server does not answer, or is older than 24.8.
 */
export async function connectClickHouse(address: ClusterAddress): Promise<ClickHouse> {
  const host = new URL(address.url).host
  let settings: Readonly<Record<string, string>> = {}

  async function send<T>(sql: string, receive: (reply: Dispatcher.ResponseData) => Promise<T>): Promise<T> {
    const query_id = randomUUID()
    // The status comes with the end of the query, so that an error is never taken for the end of a result.
    const parameters = { ...settings, database: address.database, query_id, wait_end_of_query: '1' }
    try {
      return await receive(await post(address, sql, parameters))
    } catch (error) {
      const kill = post(address, `KILL QUERY WHERE query_id = '${query_id}' ASYNC`, {})
      await kill.then(({ body }) => body.dump()).catch(() => undefined)
      throw new DataError(describeFault(host, address.password, error), { cause: error })
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
  const [found] = await server.rows('SELECT version() AS version', serverRow)
  if (!(Number.parseFloat(found?.version ?? '') >= OLDEST_VERSION)) {
    throw new DataError(
      `The ClickHouse cluster at ${host} has version ${found?.version}; a pull needs ${OLDEST_VERSION} or newer. ` +
        'Nothing is published; upgrade the cluster',
    )
  }
  settings = await settingsToSend(server)
  return server
}

/** @throws Error with the server's own words, or the fault of the connection. */
async function post(
  { url, user, password }: ClusterAddress,
  sql: string,
  parameters: Readonly<Record<string, string>>,
): Promise<Dispatcher.ResponseData> {
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

/**
 * The settings to send: a limit of the profile must throw, since "break" cuts a result off without a word. What has its value
 * is not sent, so that a user who may change no setting can pull too.
 * @throws DataError for a required one that the user may not change.
 */
async function settingsToSend(server: ClickHouse): Promise<Readonly<Record<string, string>>> {
  const found = await server.rows(
    `SELECT name, value, readonly AS is_fixed FROM system.settings
    WHERE name IN ('skip_unavailable_shards', ${Object.keys(PREFERRED).map(quoted).join(', ')})
      OR name LIKE '%\\_overflow\\_mode%'`,
    settingRow,
  )
  const wanted = found
    .map((setting) => {
      const required = setting.name === 'skip_unavailable_shards' ? '0' : 'throw'
      return { ...setting, wanted: PREFERRED[setting.name] ?? required }
    })
    .filter((setting) => setting.value !== setting.wanted)
  const fixed = wanted.find(({ name, is_fixed }) => is_fixed && PREFERRED[name] === undefined)
  if (fixed !== undefined) {
    throw new DataError(
      `The profile of the cluster's user has ${fixed.name} = ${fixed.value}, which may cut results short, and the user may ` +
        `not change it. Nothing is published; set ${fixed.name} = ${fixed.wanted} in the profile`,
    )
  }
  return Object.fromEntries(
    wanted.filter(({ is_fixed }) => !is_fixed).map((setting) => [setting.name, setting.wanted]),
  )
}

/** A text as a literal of ClickHouse. */
export function quoted(value: string): string {
  return `'${value.replaceAll(/[\\']/g, String.raw`\$&`)}'`
}

/** Names as a quoted identifier of ClickHouse. */
export function quotedName(...names: readonly string[]): string {
  return names.map((name) => `\`${name.replaceAll(/[\\`]/g, String.raw`\$&`)}\``).join('.')
}

function describeFault(host: string, password: string, error: unknown): string {
  const reason = firstLineOf(error).replace(/[.\s]*(?:\(version [^)]*\))?[.\s]*$/, '') || String(error)
  const shown = password === '' ? reason : reason.replaceAll(password, '***')
  const remedy = REMEDIES.find(([words]) => words.test(reason))?.[1]
  return `The ClickHouse cluster at ${host} cannot be read: ${shown}. Nothing is published; ${remedy}`
}
