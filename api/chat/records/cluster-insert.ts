/** Inserts usage records into the table of a ClickHouse cluster (data/clickhouse.sql). */
import { ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { z } from 'zod'
import type { ClickHouseAddress } from '../../../pipeline/contract/clickhouse-address.ts'
import { codeOf } from '../../process/system-errors.ts'

export interface ClusterTable {
  /**
   * Inserts rows; resolves when the shards have them.
   * @throws {ClusterAway} when no server answered; then the rows may be in or not.
   * @throws {Error} that begins with the server's code, `Code: 60`, when it refused. Neither tells credentials.
   */
  insert(rows: readonly UsageRow[], signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** No server answered: other rows would fare no better. */
export class ClusterAway extends Error {
  override readonly name = 'ClusterAway'
}

/**
 * A usage record as the table has it. Where a text is unknown it is empty, since the table's texts are not nullable,
 * and the time is in whole seconds, as its column is.
 */
export const usageRowSchema = z.object({
  ts: z.iso.datetime().transform((time) => time.slice(0, 19).replace('T', ' ')),
  app_id: z.int(),
  prompt_tokens: z.int().nullable(),
  completion_tokens: z.int().nullable(),
  requests: z.int(),
  request_id: z.string(),
  model: z.string().nullable().transform(orEmpty),
  provider: z.string().nullable().transform(orEmpty),
  account_id: z.string(),
})
export type UsageRow = z.infer<typeof usageRowSchema>

const COLUMNS: [string, ...string[]] = ['ts', ...usageRowSchema.omit({ ts: true }).keyof().options]

/** Milliseconds without a byte from the cluster after which an insert counts as failed. */
const SILENCE_MS = 30_000

/** Opens the table; nothing is sent yet. */
export function openClusterTable({ url, user, password, database, table }: ClickHouseAddress): ClusterTable {
  const client = createClient({
    url,
    username: user,
    password,
    request_timeout: SILENCE_MS,
    log: { level: ClickHouseLogLevel.OFF },
    // Otherwise a Distributed table answers before the shards have the rows.
    clickhouse_settings: { insert_distributed_sync: 1 },
  })
  return {
    async insert(rows, signal) {
      const into = { table: `${database}.${table}`, columns: COLUMNS, format: 'JSONEachRow' } as const
      try {
        // The client only hears of an abort that is still to come.
        signal.throwIfAborted()
        await client.insert({ ...into, values: rows, abort_signal: signal })
      } catch (error) {
        throw clusterError(error, password)
      }
    },
    close: () => client.close(),
  }
}

/** An answer may quote the rows, and a proxy's be a whole page. */
const REASON_LENGTH = 500

/** In one line, and without the cause, which may tell credentials. */
function clusterError(error: unknown, password: string): Error {
  const [line = ''] = textOf(error).split('\n', 1)
  const told = (password === '' ? line : line.replaceAll(password, '***')).slice(0, REASON_LENGTH)
  if (error instanceof ClickHouseError) return new Error(`Code: ${error.code}, ${told}`)
  // Old releases answer in a form that the client does not recognise.
  return told.startsWith('Code: ') ? new Error(told) : new ClusterAway(told)
}

/** Where several addresses of a host were tried, the message is empty. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message || (codeOf(error) ?? error.name)
}

function orEmpty(text: string | null): string {
  return text ?? ''
}
