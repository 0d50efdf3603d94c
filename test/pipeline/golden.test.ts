/**
 * CONTRACT 4.2: hand-made raw input that covers every rule, in two states: a first run, and a later run after files were
 * added. The expected tables come from test/support/pipeline/oracle.ts, never from the pipeline; the figures "checked by
 * hand", coverage.csv and restatements.csv were added up on paper.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../support/folders.ts'
import { copyRaw, currentSnapshot, deliver, publish, query } from '../support/pipeline/nightly.ts'
import { REPOSITORY } from '../support/processes.ts'
import type { TextRow } from '../support/pipeline/nightly.ts'
import { appDaily, appsTable, ranking, rankingSql, readDataset } from '../support/pipeline/oracle.ts'
import type { Dataset, Question } from '../support/pipeline/oracle.ts'

const RULES = join(REPOSITORY, 'test', 'golden', 'rules')

/** The day of the rejected rows: 33 of 3300, exactly the allowed 1 %. */
const REJECTS_DAY = '2025-01-05'
const FILLER_ROWS = 3_300 - 23 - 13

const NO_FILTER = { category: null, subcategory: null }

/** The lists in expected/rankings.csv. */
const QUESTIONS: readonly Question[] = [
  { sort: 'popular', start: '2025-01-14', end: '2025-01-20', ...NO_FILTER },
  { sort: 'trending', start: '2025-01-14', end: '2025-01-20', ...NO_FILTER },
  { sort: 'popular', start: '2025-01-01', end: '2025-01-20', ...NO_FILTER },
  { sort: 'popular', start: '2025-01-01', end: '2025-01-20', category: 'coding', subcategory: null },
  { sort: 'popular', start: '2025-01-01', end: '2025-01-20', category: 'entertainment', subcategory: null },
  { sort: 'popular', start: '2025-01-01', end: '2025-01-20', category: null, subcategory: 'cli-agent' },
  { sort: 'popular', start: '2025-01-01', end: '2025-01-20', category: 'coding', subcategory: 'cli-agent' },
  { sort: 'trending', start: '2025-01-01', end: '2025-01-20', category: 'coding', subcategory: null },
  { sort: 'trending', start: '2025-01-03', end: '2025-01-05', ...NO_FILTER },
  { sort: 'popular', start: '2025-01-10', end: '2025-01-12', ...NO_FILTER },
  { sort: 'popular', start: '2025-01-12', end: '2025-01-12', ...NO_FILTER },
  { sort: 'popular', start: '2025-01-12', end: '2025-01-13', ...NO_FILTER },
  { sort: 'popular', start: '2025-01-07', end: '2025-01-07', ...NO_FILTER },
  { sort: 'popular', start: '2025-01-15', end: '2025-01-21', ...NO_FILTER },
]

/** Queries of the published tables for the comparison; their columns match the expected files. */
const TABLES = {
  apps: "SELECT * REPLACE (array_to_string(subcategories, '|') AS subcategories) FROM apps ORDER BY app_id",
  app_daily: 'FROM app_daily ORDER BY day, app_id',
  coverage: 'FROM coverage ORDER BY day',
  restatements: 'SELECT * EXCLUDE (as_of, previous_as_of, cause) FROM restatements ORDER BY day',
} as const

const NOTHING: Dataset = { apps: new Map(), days: [], rejects: [] }

const dataDir = makeFolder()
const states = {
  first: { asOf: '2025-01-21T02:00:00Z', folder: RULES, snapshot: '', dataset: NOTHING },
  later: { asOf: '2025-01-22T02:00:00Z', folder: join(RULES, 'later'), snapshot: '', dataset: NOTHING },
}

beforeAll(async () => {
  deliver(dataDir, REJECTS_DAY, Array<string>(FILLER_ROWS).fill('104,1,0'), 'filler.csv')
  for (const state of [states.first, states.later]) {
    copyRaw(dataDir, join(state.folder, 'raw'))
    state.dataset = readDataset(join(dataDir, 'raw'), state.asOf)
    await publish(dataDir, state.asOf)
    state.snapshot = currentSnapshot(dataDir)
  }
})

describe.each(['first', 'later'] as const)('state %s', (name) => {
  const state = states[name]
  const expectedFile = (table: string) => join(state.folder, 'expected', `${table}.csv`)

  it.each([
    ['apps', appsTable],
    ['app_daily', appDaily],
  ] as const)('the table %s is as expected', async (table, compute) => {
    const expected = compute(state.dataset)
    await expect(toCsv(expected)).toMatchFileSnapshot(expectedFile(table))
    expect(await ask(state, TABLES[table])).toEqual(expected)
  })

  it.each(['coverage', 'restatements'] as const)('the table %s is as added up by hand', async (table) => {
    expect(toCsv(await ask(state, TABLES[table]))).toBe(readFileSync(expectedFile(table), 'utf8'))
  })

  it('the macros give the expected rankings', async () => {
    const expected = QUESTIONS.flatMap((question) =>
      ranking(state.dataset, question).map((row) => ({ ...question, ...row })),
    )
    await expect(toCsv(expected)).toMatchFileSnapshot(expectedFile('rankings'))
    const lists = await Promise.all(QUESTIONS.map((question) => ask(state, rankingSql(question))))
    expect(lists.flatMap((rows, at) => rows.map((row) => ({ ...QUESTIONS[at], ...row })))).toEqual(expected)
  })
})

it('quarantines exactly the expected rows', async () => {
  const rejects = states.first.dataset.rejects.map(({ day: _day, ...reject }) => reject)
  expect(rejects).toHaveLength(33)
  await expect(toCsv(rejects)).toMatchFileSnapshot(join(RULES, 'expected', 'rejects.csv'))
  const quarantine = await query(
    join(dataDir, 'warehouse.duckdb'),
    `SELECT regexp_extract(file, '[^/]+$') AS file, "row" AS line FROM quarantine`,
  )
  const places = rejects.map(({ file, line }) => `${file} ${line}`)
  expect(quarantine.map(asCells).toSorted()).toEqual(places.toSorted())
})

const usedOn = (day: string, ids: string) =>
  `SELECT app_id, requests, prompt_tokens, completion_tokens FROM app_daily
   WHERE day = '${day}' AND app_id IN (${ids}) ORDER BY app_id`

/** Rows of a query, added up on paper. */
const BY_HAND: readonly (readonly [string, string, readonly string[]])[] = [
  [
    // 104: 1000 + 2000 + 4000 + 8000 and 0 + 1 + 2 + 4; 106: 10 + 20 + 40 and 1 + 2 + 4.
    'aliases count for the canonical app at the end of their chain',
    usedOn('2025-01-03', '104, 106'),
    ['104 4 15000 7', '106 3 70 7'],
  ],
  [
    // 101: exact 1, newest-row 20, newest-file 300. 102: newest-here 3. 103 loses larger-app to 104.
    // 104: 4 + 41 + 0 + 0 and 0 + 0 + 600 + 7000, requests 1 + 1 + 1 + 3. 106: seven rows without a twin that day.
    'among rows with the same request_id the newest counts, then the larger',
    usedOn('2025-01-04', '101, 102, 103, 104, 106'),
    ['101 3 321 0', '102 1 3 0', '104 6 45 7600', '106 7 232 0'],
  ],
  [
    'on a day with one pair of equal ids and a row without id, the older of the pair is dropped',
    usedOn('2025-01-09', '403'),
    ['403 2 101 0'],
  ],
  [
    // 101: 7 + 9 and 70 + 90. 102: the valid row of a pair; the newer row is invalid.
    'rejected rows do not count, but their neighbours do',
    usedOn('2025-01-05', '101, 102'),
    ['101 2 16 160', '102 1 5 50'],
  ],
  [
    // 101: 12 + 100 + 40 + 400 and 3 + 0 + 4 + 0, requests 1 + 1 + 10 + 1. 103: requests 1 + 5 + 7, no tokens.
    'every accepted spelling of time and number is read',
    usedOn('2025-01-06', '101, 102, 103, 106'),
    ['101 13 552 7', '102 6 3000 3', '103 13 0 0', '106 1 8 0'],
  ],
  [
    // Days past 2^63 as a sum of two counts, and 6000000000000000001 + 6000000000000000002.
    'sums past 2^63 keep every digit',
    "SELECT app_id, total_tokens FROM popular('2025-01-10', '2025-01-12')",
    ['601 18200000000000000001', '602 12000000000000000003', '605 9300000000000000001'],
  ],
  [
    // Threefold excess: 505 has 3 * 1001 - 2, 503 has 3 * 1010 - 30, 501 and 502 have 3 * 1000, 504 has 3 * 1000 - 1.
    'trending orders by thirds of a token, then by total, then by id',
    "SELECT app_id, total_tokens, excess_tokens FROM trending('2025-01-14', '2025-01-20', subcategory := 'video-gen')",
    ['505 1001 1000', '503 1010 1000', '501 1000 1000', '502 1000 1000', '504 1000 999'],
  ],
  [
    'an app without a request in the window is not in the list',
    "SELECT app_id FROM popular('2025-01-12', '2025-01-12') WHERE app_id IN (701, 702)",
    [],
  ],
  [
    'an app with its only request on the last day of the window is in the list',
    "SELECT app_id FROM popular('2025-01-12', '2025-01-13') WHERE app_id IN (701, 702)",
    ['701'],
  ],
]

it.each(BY_HAND)('checked by hand: %s', async (_promise, sql, expected) => {
  expect((await ask(states.first, sql)).map(asCells)).toEqual(expected)
})

const asCells = (row: TextRow) => Object.values(row).join(' ')

function ask({ snapshot }: { readonly snapshot: string }, sql: string): Promise<TextRow[]> {
  return query(join(snapshot, 'app-rankings.duckdb'), sql)
}

/** Rows as CSV under the names of the first row's columns. */
function toCsv(rows: readonly TextRow[]): string {
  const [first] = rows
  if (first === undefined) return 'no rows\n'
  const cell = (text: string | null) =>
    text !== null && /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  const lines = rows.map((row) => Object.values(row).map(cell).join(','))
  return `${[Object.keys(first).join(','), ...lines].join('\n')}\n`
}
