/** Queries a ClickHouse cluster over HTTP; its messages contain no credentials. */
import { createWriteStream } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { text } from 'node:stream/consumers'
import { request } from 'undici'
import type { Dispatcher } from 'undici'
import { z } from 'zod'
import { DataError, firstLineOf } from '../../errors.ts'
import { VERSION } from '../../contract/version.ts'
import type { ClusterAddress } from './address.ts'

export type Cluster = {
  /** Whether the user may change settings. */
  readonly maySet: boolean
  /** All rows of a short query. */
  readonly rows: <T>(sql: string, schema: z.ZodType<T>) => Promise<T[]>
  /** Writes the result of a query to a file, as Parquet. */
  readonly save: (sql: string, path: string) => Promise<void>
}

/** A statement that lasts longer than this many milliseconds is ended. */
const TIMEOUT_MS = 3_600_000

/** The oldest version with every setting and table column that a pull needs. */
const OLDEST_VERSION = [24, 8] as const

/** Settings without which a result may be cut short. */
const REQUIRED: Readonly<Record<string, string>> = { skip_unavailable_shards: '0', limit: '0', offset: '0' }

/** Settings for users who may change them. */
const PREFERRED: Readonly<Record<string, string>> = {
  fallback_to_stale_replicas_for_distributed_queries: '0',
  max_replica_delay_for_distributed_queries: '10',
  output_format_parquet_string_as_string: '1',
  log_comment: `app-rankings ${VERSION}`,
  // The server ends a query of a client that is gone, if the query may only read.
  readonly: '2',
  cancel_http_readonly_queries_on_client_close: '1',
}

/** What a limit of the profile does; "break" would cut the result off without a word. */
const OVERFLOW_MODES = '%\\_overflow\\_mode%'

/** Remedies, by the words of the cluster and of Node. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /Authentication failed|AUTHENTICATION_FAILED|REQUIRED_PASSWORD/,
    'correct the user and the password, in USAGE_SOURCE or in USAGE_SOURCE_USER and USAGE_SOURCE_PASSWORD',
  ],
  [/ACCESS_DENIED|Not enough privileges/, 'grant the user what data/clickhouse.sql lists'],
  [/UNKNOWN_TABLE|UNKNOWN_DATABASE|UNKNOWN_IDENTIFIER/, 'make the table as in data/clickhouse.sql'],
  [/CLUSTER_DOESNT_EXIST|Requested cluster/, 'correct the cluster that USAGE_SOURCE names'],
  [
    /TOO_MANY_ROWS|TIMEOUT_EXCEEDED|MEMORY_LIMIT_EXCEEDED|LIMIT_EXCEEDED/,
    "raise the limit in the user's profile",
  ],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EPROTO|Parse Error|SSL|certificate/i,
    'run again when it is up; USAGE_SOURCE must name host and port of its HTTP interface (8123 as a rule, 8443 with ' +
      'tls=1; NODE_EXTRA_CA_CERTS names the certificate of a private authority)',
  ],
]
const USUAL_REMEDY = 'run again when every shard answers'

const settingRow = z.object({ name: z.string(), value: z.string(), fixed: z.number() })
const versionRow = z.object({ version: z.string() })

/**
 * Connects and pins the settings of every later query. What has its value already is not sent, so that a user who may
 * change no setting can pull too.
 * @throws DataError when the cluster does not answer, or is older than 24.8.
 */
export async function connectCluster(address: ClusterAddress): Promise<Cluster> {
  const host = new URL(address.url).host
  const settings: Record<string, string> = {}

  async function send(sql: string, format: string): Promise<Dispatcher.ResponseData> {
    const queryId = randomUUID()
    const parameters = new URLSearchParams({
      ...settings,
      database: address.database,
      query_id: queryId,
      // The status comes with the end of the query, so that an error is never taken for the end of a result.
      wait_end_of_query: '1',
    })
    try {
      return await post(address, `${sql} FORMAT ${format}`, parameters)
    } catch (error) {
      await killQuery(address, queryId)
      throw error
    }
  }

  async function explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof DataError) throw error
      throw new DataError(describeFault(host, address.password, error), { cause: error })
    }
  }

  const cluster = {
    rows: async <T>(sql: string, schema: z.ZodType<T>) =>
      await explained(async () => {
        const lines = (await text((await send(sql, 'JSONEachRow')).body)).split('\n')
        return lines.filter((line) => line !== '').map((line) => schema.parse(JSON.parse(line)))
      }),
    save: async (sql: string, path: string) =>
      await explained(async () =>
        pipeline((await send(sql, 'Parquet')).body, createWriteStream(path, { flush: true })),
      ),
  }
  await requireVersion(cluster, host)
  Object.assign(settings, await settingsToSend(cluster))
  return { ...cluster, maySet: settings['readonly'] !== undefined }
}

/** @throws Error with the server's own words, or the fault of the connection. */
async function post(
  { url, user, password }: ClusterAddress,
  sql: string,
  parameters: URLSearchParams,
): Promise<Dispatcher.ResponseData> {
  const response = await request(`${url}/?${parameters.toString()}`, {
    method: 'POST',
    body: sql,
    headers: { 'x-clickhouse-user': user, 'x-clickhouse-key': password },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  })
  if (response.statusCode === 200) return response
  throw new Error(await text(response.body))
}

/** Ends a query that this run waits for in vain; a server that cannot be reached ends it by itself. */
async function killQuery(address: ClusterAddress, queryId: string): Promise<void> {
  const kill = post(address, `KILL QUERY WHERE query_id = '${queryId}' ASYNC`, new URLSearchParams())
  await kill.then(({ body }) => body.dump()).catch(() => undefined)
}

async function requireVersion(cluster: Pick<Cluster, 'rows'>, host: string): Promise<void> {
  const [found] = await cluster.rows('SELECT version() AS version', versionRow)
  const [major = 0, minor = 0] = (found?.version ?? '').split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_VERSION
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  throw new DataError(
    `The ClickHouse cluster at ${host} has version ${found?.version}; a pull needs ${OLDEST_VERSION.join('.')} or newer. ` +
      'Nothing is published; upgrade the cluster',
  )
}

/**
 * The settings that have another value for this user.
 * @throws DataError for a required one that the user may not change.
 */
async function settingsToSend(cluster: Pick<Cluster, 'rows'>): Promise<Record<string, string>> {
  const names = Object.keys({ ...REQUIRED, ...PREFERRED })
    .map(quoted)
    .join(', ')
  const found = await cluster.rows(
    `SELECT name, value, readonly AS fixed FROM system.settings WHERE name IN (${names}) OR name LIKE ${quoted(OVERFLOW_MODES)}`,
    settingRow,
  )
  const toSend: Record<string, string> = {}
  for (const { name, value, fixed } of found) {
    const wanted = PREFERRED[name] ?? REQUIRED[name] ?? 'throw'
    if (value === wanted) continue
    if (fixed === 0) toSend[name] = wanted
    else if (PREFERRED[name] === undefined) {
      throw new DataError(
        `The profile of the cluster's user has ${name} = ${value}, which may cut results short, and the user may not ` +
          `change it. Nothing is published; set ${name} = ${wanted} in the profile`,
      )
    }
  }
  return toSend
}

/** A text as a literal of ClickHouse. */
export function quoted(value: string): string {
  return `'${value.replaceAll(/[\\']/g, (character) => `\\${character}`)}'`
}

function describeFault(host: string, password: string, error: unknown): string {
  const reason =
    error instanceof z.ZodError
      ? `it answered with a row of another shape: ${z.prettifyError(error).replaceAll(/\s+/g, ' ')}`
      : firstLineOf(error).replace(/[.\s]*(?:\(version [^)]*\))?[.\s]*$/, '') || String(error)
  const shown = password === '' ? reason : reason.replaceAll(password, '***')
  const remedy = REMEDIES.find(([words]) => words.test(reason))?.[1] ?? USUAL_REMEDY
  return `The ClickHouse cluster at ${host} cannot be read: ${shown}. Nothing is published; ${remedy}`
}
