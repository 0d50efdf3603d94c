/** Queries a ClickHouse cluster and inserts into it; its messages contain no credentials. */
import { ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { z } from 'zod'
import type { ClickHouseAddress } from './address.ts'
import { DataError, firstLineOf } from '../../errors.ts'

export type ClickHouse = {
  /** Rows of a SELECT in chunks, decoded by a schema; 64-bit integers are text. */
  readonly read: <T>(sql: string, schema: z.ZodType<T>) => AsyncGenerator<T>
  /** All rows of a short SELECT. */
  readonly readAll: <T>(sql: string, schema: z.ZodType<T>) => Promise<T[]>
  /**
   * Inserts rows; resolves once every shard has its part.
   * @throws InsertError
   */
  readonly insert: (into: InsertTarget, rows: readonly Readonly<Record<string, unknown>>[]) => Promise<void>
  readonly close: () => Promise<void>
}

export type InsertTarget = {
  /** `database.table` */
  readonly table: string
  readonly columns: readonly [string, ...string[]]
}

/** An insert without confirmation: the cluster may have all rows, some, or none. */
export class InsertError extends DataError {
  /** Whether a server rejected the rows; otherwise other rows would fail too. */
  readonly isRefused: boolean

  constructor(message: string, cause: unknown) {
    super(message, { cause })
    // The client does not recognise errors of old releases.
    this.isRefused = cause instanceof ClickHouseError || firstLineOf(cause).startsWith('Code: ')
  }
}

/** Counting a day of a large cluster may take this long. */
const TIMEOUT_MS = 3_600_000

/** Remedies, by the error texts of the cluster (new and old versions) and of Node. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /Authentication failed|Wrong password|Password required|Unknown user/,
    'correct the user and the password, in USAGE_SOURCE or in USAGE_SOURCE_USER and USAGE_SOURCE_PASSWORD',
  ],
  [/Not enough privileges/, 'grant the user what it lacks'],
  [/Table .* doesn't exist|UNKNOWN_TABLE|No such column/, 'make the table as in data/clickhouse.sql'],
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

/** Removes the text that old versions put around a message, and its full stop. */
function plainWords(text: string): string {
  return text.replace(/\be\.displayText\(\) = /, '').replace(/(?:, e\.what\(\) = .*|\. Log: )?[.\s]*$/, '')
}

/** @param outcome the effect on the data. */
function describeFault(
  { url, password }: Pick<ClickHouseAddress, 'url' | 'password'>,
  { what, outcome }: { readonly what: string; readonly outcome: string },
  error: unknown,
): string {
  const reason = reasonOf(error)
  const shown = password === '' ? reason : reason.replaceAll(password, '***')
  return `The ClickHouse cluster at ${new URL(url).host} ${what}: ${shown}. ${outcome}; ${remedyOf(reason)}`
}

const NOT_COUNTED = { what: 'cannot be counted', outcome: 'Nothing is published' }
const NOT_INSERTED = { what: 'does not take usage records', outcome: 'They stay in their files' }

/** Opens a client without connecting. */
export function connectClickHouse(address: ClickHouseAddress, timeoutMs = TIMEOUT_MS): ClickHouse {
  const { url, user, password } = address
  const client = createClient({
    url,
    username: user,
    password,
    request_timeout: timeoutMs,
    log: { level: ClickHouseLogLevel.OFF },
    clickhouse_settings: {
      // Without a shard the query must fail; otherwise its rows would be missing.
      skip_unavailable_shards: 0,
      output_format_json_quote_64bit_integers: 1,
      // Sends progress during long queries; otherwise proxies may close the idle connection.
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
      throw new DataError(describeFault(address, NOT_COUNTED, error), { cause: error })
    }
  }

  return {
    read,
    readAll: (sql, schema) => Array.fromAsync(read(sql, schema)),
    async insert({ table, columns }, values) {
      try {
        await client.insert({
          table,
          columns: [...columns],
          values,
          format: 'JSONEachRow',
          // Otherwise a Distributed table answers before the shards store the rows.
          clickhouse_settings: { insert_distributed_sync: 1 },
        })
      } catch (error) {
        throw new InsertError(describeFault(address, NOT_INSERTED, error), error)
      }
    },
    close: () => client.close(),
  }
}
