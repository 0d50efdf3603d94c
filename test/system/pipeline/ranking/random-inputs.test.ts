/** CONTRACT 4.2: random registries and usage: the pipeline and the naive oracle agree on days and rankings. */
import * as fc from 'fast-check'
import { join } from 'node:path'
import { afterAll, expect, it, vi } from 'vitest'
import { publish, queryCurrent, TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'
import { computeDataset } from '../../../support/pipeline/oracle-reading.ts'
import { FILTERS, publicApps, publicDays, ranking } from '../../../support/pipeline/oracle.ts'
import type { Question } from '../../../support/pipeline/oracle.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const AS_OF = '2025-01-15T02:00:00Z'
const APPS = 12

/** A run takes about a second, so a few large inputs. */
const INPUTS = 10

const folders = new TemporaryFolders()

afterAll(() => folders.removeAll())

const count = fc.oneof(
  // A day of an app may not pass 2^63.
  fc.constantFrom('0', '1', '9007199254740993'),
  fc.bigInt(0n, 1_000n).map(String),
)

const usageRow = fc.record({
  second: fc.integer({ min: 0, max: 86_399 }),
  // The last two are not registered.
  app: fc.integer({ min: 1, max: APPS + 2 }),
  tokens: fc.option(fc.tuple(count, count)),
  requests: fc.option(fc.integer({ min: 0, max: 5 })),
  request_id: fc.option(fc.integer({ min: 1, max: 40 }).map((id) => `r${id}`)),
})
type UsageRow = typeof usageRow extends fc.Arbitrary<infer Row> ? Row : never

const app = fc.record({
  visibility: fc.constantFrom('public', 'public', 'public', 'hidden', 'private'),
  tags: fc.subarray(['cli-agent', 'ide-extension', 'game', 'roleplay', 'legal']),
  // The target has a smaller id, so there is no cycle.
  alias: fc.option(fc.double({ min: 0, max: 0.999, noNaN: true }), { freq: 3 }),
  hour: fc.integer({ min: 0, max: 3 }),
})
type App = typeof app extends fc.Arbitrary<infer Row> ? Row : never

const file = fc.record({
  day: fc.integer({ min: 1, max: 16 }),
  rows: fc.array(usageRow, { minLength: 1, maxLength: 40 }),
})
type UsageFile = typeof file extends fc.Arbitrary<infer Row> ? Row : never

const input = fc.record({
  // Twice as many rows as apps: the same app is in both registry files.
  apps: fc.array(app, { minLength: 2 * APPS, maxLength: 2 * APPS }),
  files: fc.array(file, { minLength: 10, maxLength: 40 }),
})

it('the pipeline agrees with the oracle', async () => {
  const property = fc.asyncProperty(input, async ({ apps, files }) => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'apps/first.csv', registry(apps.slice(0, APPS)))
    writeRaw(dataDir, 'apps/second.csv', registry(apps.slice(APPS)))
    // One day always has usage, so that there is something to publish.
    for (const [index, each] of [...files, { day: 3, rows: [] }].entries()) {
      const day = `2025-01-${String(each.day).padStart(2, '0')}`
      writeRaw(dataDir, `usage/date=${day}/${index}.csv`, usage(day, each.rows))
    }
    await publish(dataDir, AS_OF)
    await expectAgreement(dataDir)
  })
  // A failure prints its seed; shrinking would take a run per step.
  await fc.assert(property, { numRuns: INPUTS, endOnFailure: true })
})

async function expectAgreement(dataDir: string): Promise<void> {
  const dataset = computeDataset(join(dataDir, 'raw'), AS_OF)
  const ids = await queryCurrent(dataDir, 'SELECT app_id FROM apps ORDER BY app_id')
  expect(ids).toEqual(asText(publicApps(dataset).map(({ app_id }) => ({ app_id }))))
  const days = await queryCurrent(dataDir, 'SELECT * FROM app_daily ORDER BY day, app_id')
  expect(days).toEqual(asText(publicDays(dataset)))
  const [meta] = await queryCurrent(dataDir, 'SELECT data_through FROM meta')
  const through = meta?.['data_through'] ?? ''
  for (const question of questions()) {
    if (question.start > through) continue
    const { sort, start, end, category, subcategory } = question
    const filter = `category := ${literal(category)}, subcategory := ${literal(subcategory)}`
    const rows = await queryCurrent(
      dataDir,
      `SELECT rank, app_id, app_name, total_requests, total_tokens, ${sort === 'trending' ? '' : 'NULL AS '}excess_tokens
       FROM ${sort}('${start}', '${end}', ${filter}) ORDER BY rank`,
    )
    expect(rows, JSON.stringify(question)).toEqual(
      asText(ranking(dataset, { ...question, end: end < through ? end : through })),
    )
  }
}

function questions(): Question[] {
  const filters = FILTERS.filter(
    ({ category, subcategory }) => subcategory === null && category !== 'creative',
  )
  return (['popular', 'trending'] as const).flatMap((sort) =>
    [3, 9, 14].flatMap((day) => {
      const window = {
        start: `2025-01-${String(day - 2).padStart(2, '0')}`,
        end: `2025-01-${String(day).padStart(2, '0')}`,
      }
      return filters.map((filter) => ({ sort, ...window, ...filter }))
    }),
  )
}

function asText(rows: readonly object[]) {
  return rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([column, value]) => [column, value === null ? null : String(value)]),
    ),
  )
}

function literal(text: string | null): string {
  return text === null ? 'NULL' : `'${text}'`
}

function registry(apps: readonly App[]): string {
  const rows = apps.map(({ visibility, tags, alias, hour }, index) => {
    const target = alias === null || index === 0 ? '' : 1 + Math.floor(alias * index)
    return `${index + 1},App ${index + 1},${visibility},${tags.join('|')},${target},2025-01-01T0${hour}:00:00Z\n`
  })
  return `app_id,app_name,visibility,subcategories,alias_of,updated_at\n${rows.join('')}`
}

function usage(day: string, rows: UsageFile['rows']): string {
  const lines = rows.map((row) => {
    const [prompt = '', completion = ''] = row.tokens ?? []
    return `${time(day, row)},${row.app},${prompt},${completion},${row.requests ?? ''},${row.request_id ?? ''}\n`
  })
  return `ts,app_id,prompt_tokens,completion_tokens,requests,request_id\n${lines.join('')}`
}

function time(day: string, { second }: UsageRow): string {
  return new Date(Date.parse(day) + second * 1000).toISOString()
}
