/** CONTRACT 4.1 and 4.2: the macros of a published file clamp and reject dates as the API does, also in an attached database. */
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { beforeAll, describe, expect, it } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { rankingsSchema, startApi } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { connectTo, query } from '../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../support/pipeline/snapshot.ts'

const FIRST_DAY = '2025-01-01'
const LAST_DAY = '2025-02-28'
const RANKINGS = ['popular', 'trending', 'popular_by_requests', 'daily_models'] as const

const dataDir = makeFolder()
let file = ''
let connection: DuckDBConnection

beforeAll(async () => {
  const days = Array.from({ length: 59 }, (_, index) => addDays(FIRST_DAY, index))
  const folder = await publishSnapshot(dataDir, {
    asOf: new Date('2025-03-01T02:00:00Z'),
    dataThrough: LAST_DAY,
    firstDay: FIRST_DAY,
    apps: [1, 2, 3].map((id) => ({ id, name: `App ${id}`, tags: ['game' as const] })),
    daily: days.flatMap((day, index) =>
      [1, 2, 3].map((app) => ({ day, app, requests: 10 - 3 * app, tokens: app * index })),
    ),
    models: ['acme/large', 'acme/small', 'other'].map((model) => ({ day: '2025-01-21', model, tokens: 1 })),
  })
  file = join(folder, SNAPSHOT_FILE)
  connection = await connectTo(file, { access_mode: 'READ_ONLY' })
})

/** The rows as text, or the error message. */
async function ask(sql: string, from = connection): Promise<unknown> {
  const asked = from.runAndReadAll(sql).then((reader) => reader.getRowsJson())
  return await asked.catch((error: unknown) => String(error))
}

const DATES = ['2024-12-31', FIRST_DAY, '2025-02-27', LAST_DAY, '2025-03-01', '2025-04-05']
const WINDOWS = DATES.flatMap((start) => DATES.map((end) => ({ start, end })))

it('the macros clamp and reject each pair of dates as the API does', async () => {
  await using api = await startApi(dataDir)
  for (const { start, end } of WINDOWS) {
    const reply = await api.getAsNewAccount(`/datasets/app-rankings?start_date=${start}&end_date=${end}`)
    const resolved = reply.status === 400 ? undefined : rankingsSchema.parse(await reply.json()).meta
    for (const ranking of RANKINGS) {
      const rows = await ask(`FROM ${ranking}('${start}', '${end}')`)
      if (resolved === undefined) expect(rows).toMatch(/(start|end)_date 20.* is (after|before) .*; give/)
      else
        expect(rows).toEqual(await ask(`FROM ${ranking}('${resolved.start_date}', '${resolved.end_date}')`))
    }
  }
})

describe.each(RANKINGS)('%s', (ranking) => {
  it('accepts dates as DATE or text, and rejects other values', async () => {
    const rows = await ask(`FROM ${ranking}('2025-01-20', '2025-01-31')`)
    expect(rows).toHaveLength(3)
    expect(await ask(`FROM ${ranking}(DATE '2025-01-20', DATE '2025-01-31')`)).toEqual(rows)
    expect(await ask(`FROM ${ranking}('January', '2025-01-31')`)).toContain('YYYY-MM-DD')
    expect(await ask(`FROM ${ranking}('2025-01-20', NULL)`)).toContain('both needed')
  })

  it('works in an attached database after USE; without it the error names USE', async () => {
    const elsewhere = await connectTo()
    await elsewhere.run(`ATTACH '${file}' AS attached (READ_ONLY)`)
    expect(await ask(`FROM attached.${ranking}('2025-01-20', '2025-01-31')`, elsewhere)).toContain(
      'USE the attached database first',
    )
    await elsewhere.run('USE attached')
    expect(await ask(`FROM ${ranking}('2025-01-20', '2025-01-31')`, elsewhere)).toHaveLength(3)
  })
})

it('popular_by_requests ranks by requests, and the lower app_id wins ties', async () => {
  const columns = 'rank, app_id, total_requests, total_tokens'
  expect(await ask(`SELECT ${columns} FROM popular_by_requests('2025-01-02', '2025-01-02')`)).toEqual([
    ['1', '1', '7', '1'],
    ['2', '2', '4', '2'],
    ['3', '3', '1', '3'],
  ])
  expect(
    await ask(`SELECT count(*) FROM popular_by_requests('2025-01-02', '2025-01-02', category := 'coding')`),
  ).toEqual([['0']])
})

it('trending compares in integers: what a DOUBLE could not tell apart is in order', async () => {
  const tokens = 2n ** 60n
  const folder = await publishSnapshot(makeFolder(), {
    asOf: new Date('2025-03-01T02:00:00Z'),
    dataThrough: LAST_DAY,
    apps: [1, 2].map((id) => ({ id, name: `App ${id}` })),
    // Three times the day less the three before: for app 1 it is larger by one.
    daily: [
      { day: LAST_DAY, app: 1, tokens },
      { day: LAST_DAY, app: 2, tokens: tokens + 1n },
      { day: addDays(LAST_DAY, -1), app: 2, tokens: 4 },
    ],
  })
  const order = `SELECT app_id FROM trending('${LAST_DAY}', '${LAST_DAY}')`
  expect(await query(join(folder, SNAPSHOT_FILE), order)).toEqual([{ app_id: '1' }, { app_id: '2' }])
})
