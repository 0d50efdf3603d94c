/** The HTTP interface of a ClickHouse cluster that counts days, and may break the connection within an answer. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { text } from 'node:stream/consumers'
import { portOf } from '../ports.ts'

/** The queries of one day; other queries have the same answer on every day. */
export type Question = 'counts' | 'rejects'

/** Rows in the cluster's form. */
type Rows = readonly Readonly<Record<string, string | number | null>>[]

/** Milliseconds until sent data has arrived, before the connection breaks. */
const BEFORE_HANGING_UP = 200

const COLUMN_TYPES = {
  ts: "DateTime('UTC')",
  app_id: 'Int64',
  prompt_tokens: 'Int64',
  completion_tokens: 'Int64',
}

/** Answers independent of the day, by words of the query. */
const FIXED_ANSWERS: readonly (readonly [RegExp, Rows])[] = [
  [/system\.tables/, [{ engine: 'MergeTree', engine_full: 'MergeTree', partition_key: 'toYYYYMMDD(ts)' }]],
  [/system\.columns/, Object.entries(COLUMN_TYPES).map(([name, type]) => ({ name, type }))],
  [/timezone\(\)/, [{ zone: 'UTC' }]],
  [/AS suspicious/, [{ suspicious: 0 }]],
  [/AS provider_text/, []],
]

const ASKED_DAY = /toDateTime\('(\d{4}-\d\d-\d\d)/

/** A row of counts: app, requests and prompt tokens; app null holds the rejected rows. */
export function countOf(app: number | null, requests: number, tokens: number) {
  return {
    app_text: app === null ? null : String(app),
    name_text: '',
    model_text: '',
    row_count: String(requests),
    without_tokens: '0',
    request_sum: String(requests),
    prompt_high: '0',
    prompt_low: String(tokens),
    completion_high: '0',
    completion_low: '0',
    reasoning_high: '0',
    reasoning_low: '0',
    cached_high: '0',
    cached_low: '0',
  }
}

/** A rejected row with a `request_id`. */
export function rejectOf(id: string) {
  return {
    reason: 'app_id is not an integer',
    ts_text: '',
    app_text: null,
    prompt_text: '1',
    completion_text: '1',
    requests_text: null,
    id,
  }
}

/**
 * Starts a cluster with these answers for each day, `YYYY-MM-DD`.
 * @param afterBreak called for each later query of a day's counts, once an answer was broken off.
 */
export async function startCounting(
  days: Readonly<Record<string, Readonly<Record<Question, Rows>>>>,
  afterBreak: () => Promise<void>,
) {
  const script: {
    breaking: { readonly day: string; readonly question: Question } | undefined
    modified: string
  } = { breaking: undefined, modified: '1' }
  let hasBroken = false
  const server = createServer((request, response) => {
    void text(request).then((query) => answer(query, response))
  })

  async function answer(query: string, response: ServerResponse): Promise<void> {
    const fixed = fixedAnswer(query, Object.keys(days), script.modified)
    if (fixed !== undefined) return void response.end(linesOf(fixed))
    const [, day = ''] = ASKED_DAY.exec(query) ?? []
    const question: Question = query.includes('AS reason,') ? 'rejects' : 'counts'
    if (question === 'counts' && hasBroken) await afterBreak()
    response.write(linesOf(days[day]?.[question] ?? []))
    if (script.breaking?.day !== day || script.breaking.question !== question) return void response.end()
    await pause(BEFORE_HANGING_UP)
    hasBroken = true
    response.destroy()
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    /** The value of USAGE_SOURCE. */
    address: `clickhouse://reader:s3cret@127.0.0.1:${portOf(server)}/default?table=usage`,
    /** The answer to `breaking` stops before its end; `modified` is the time of every data part. */
    script,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function fixedAnswer(query: string, days: readonly string[], modified: string): Rows | undefined {
  if (query.includes('system.parts')) return days.map((day) => partOf(day, modified))
  return FIXED_ANSWERS.find(([words]) => words.test(query))?.[1]
}

function partOf(day: string, modified: string) {
  return { partition: day.replaceAll('-', ''), name: day, row_count: '1', modified }
}

function linesOf(rows: Rows): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('')
}
