/** Asks a ClickHouse cluster; what goes wrong is told without any credentials. */
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { z } from 'zod'
import type { ClickHouseAddress } from '../contract.ts'
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

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) {
    return `it answered with a row of another shape: ${z.prettifyError(error).replaceAll(/\s+/g, ' ')}`
  }
  return firstLineOf(error) || String(error)
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
    const text = reasonOf(error)
    const told = password === '' ? text : text.replaceAll(password, '***')
    return new DataError(
      `The ClickHouse cluster at ${new URL(url).host} cannot be counted: ${told}. ` +
        'Nothing is published; run again when every shard answers',
      { cause: error },
    )
  }

  return { read, readAll: (sql, schema) => Array.fromAsync(read(sql, schema)), close: () => client.close() }
}
