/** Asks a ClickHouse cluster; what goes wrong is told without any credentials. */
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { z } from 'zod'
import type { ClickHouseAddress } from '../contract/clickhouse-address.ts'
import { DataError, firstLineOf } from '../errors.ts'

export type ClickHouse = {
  /** The rows of a SELECT, in chunks as they arrive, decoded by a schema; 64-bit integers come as text. */
  readonly read: <T>(sql: string, schema: z.ZodType<T>) => AsyncGenerator<T>
  /** All rows of a SELECT that gives few. */
  readonly readAll: <T>(sql: string, schema: z.ZodType<T>) => Promise<T[]>
  readonly close: () => Promise<void>
}

/** A day of a large cluster may take its time to count. */
const TIMEOUT_MS = 3_600_000

/** What is to be done, by the words of the cluster (new and old versions of it) and of Node. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /Authentication failed|Wrong password|Password required|Unknown user/,
    'correct the user and the password, in USAGE_SOURCE or in USAGE_SOURCE_USER and USAGE_SOURCE_PASSWORD',
  ],
  [/Not enough privileges/, 'grant the user what it lacks'],
  [/Requested cluster .* not found/, 'correct the cluster that USAGE_SOURCE names'],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EPROTO|Parse Error|is for clickhouse-client/,
    'run again when it is up; USAGE_SOURCE must name host and port of its HTTP interface (8123 as a rule, 8443 with tls=1)',
  ],
]
const USUAL_REMEDY = 'run again when every shard answers'

function remedyOf(reason: string): string {
  return REMEDIES.find(([words]) => words.test(reason))?.[1] ?? USUAL_REMEDY
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) {
    return `it answered with a row of another shape: ${z.prettifyError(error).replaceAll(/\s+/g, ' ')}`
  }
  return plainWords(firstLineOf(error) || String(error))
}

/** Without what old versions of the cluster put around a sentence, and the end that ours has. */
function plainWords(text: string): string {
  return text.replace(/\be\.displayText\(\) = /, '').replace(/(?:, e\.what\(\) = .*|\. Log: )?[.\s]*$/, '')
}

/** Opens a client; nothing is sent yet. */
export function connectClickHouse({ url, user, password }: ClickHouseAddress): ClickHouse {
  const client = createClient({
    url,
    username: user,
    password,
    request_timeout: TIMEOUT_MS,
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: {
      // A shard that does not answer must fail the run, not shorten the counts.
      skip_unavailable_shards: 0,
      output_format_json_quote_64bit_integers: 1,
      // Bytes on the wire while a long query runs, so that nothing between us takes the connection for dead.
      send_progress_in_http_headers: 1,
    },
  })

  async function* read<T>(sql: string, schema: z.ZodType<T>): AsyncGenerator<T> {
    try {
      const result = await client.query({ query: sql, format: 'JSONEachRow' })
      for await (const rows of result.stream<unknown>()) {
        for (const row of rows) yield schema.parse(row.json())
      }
    } catch (error) {
      throw clusterError(error)
    }
  }

  function clusterError(error: unknown): DataError {
    const reason = reasonOf(error)
    const told = password === '' ? reason : reason.replaceAll(password, '***')
    return new DataError(
      `The ClickHouse cluster at ${new URL(url).host} cannot be counted: ${told}. ` +
        `Nothing is published; ${remedyOf(reason)}`,
      { cause: error },
    )
  }

  return { read, readAll: (sql, schema) => Array.fromAsync(read(sql, schema)), close: () => client.close() }
}
