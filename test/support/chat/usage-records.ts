/** Usage records in the form of the chat route, and the contents of their files. */
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { UsageRecords, type UsageRecord } from '../../../api/chat/records.ts'
import { memoryLog } from '../api.ts'

/** The writer of usage records over a data folder, with visible messages. */
export function openRecords(dataDir: string) {
  const { log, messages } = memoryLog()
  const records = new UsageRecords(dataDir, log)
  return { records, messages, logged: (text: string) => messages().filter(({ msg }) => msg === text) }
}

/** A served request with `changes`. */
export function usageRecord(changes: Partial<UsageRecord> = {}): UsageRecord {
  return {
    ts: '2026-03-10T12:00:00.000Z',
    request_id: randomUUID(),
    app_id: 7,
    prompt_tokens: 10,
    completion_tokens: 5,
    reasoning_tokens: null,
    cached_tokens: null,
    requests: 1,
    model: 'author/slug',
    provider: 'acme',
    account_id: 'account',
    stream: false,
    status: 200,
    outcome: 'completed',
    usage_missing: null,
    first_token_ms: 12,
    duration_ms: 34,
    attempts: [
      {
        model: 'author/slug',
        provider: 'other',
        status: 503,
        error_type: 'provider_overloaded',
        duration_ms: 3,
      },
      { model: 'author/slug', provider: 'acme', status: 200, error_type: null, duration_ms: 31 },
    ],
    ...changes,
  }
}

/** The request ids of these records. */
export function requestIds(records: readonly { readonly request_id: string }[]): string[] {
  return records.map(({ request_id }) => request_id)
}

const lineSchema = z.looseObject({ ts: z.string(), request_id: z.string() })

/** Names of a day's files that the pipeline reads. */
export function usageFiles(dataDir: string, day: string): string[] {
  const folder = join(dataDir, 'raw', 'usage', `date=${day}`)
  if (!existsSync(folder)) return []
  return readdirSync(folder).filter((name) => !/^[._]/.test(name))
}

/** The records in a day's files, file by file and line by line; each line must be complete. */
export function readRecords(dataDir: string, day: string) {
  return usageFiles(dataDir, day).flatMap((name) => {
    const text = readFileSync(join(dataDir, 'raw', 'usage', `date=${day}`, name), 'utf8')
    if (text !== '' && !text.endsWith('\n')) throw new Error(`${name} ends in half a line`)
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => lineSchema.parse(JSON.parse(line)))
  })
}
