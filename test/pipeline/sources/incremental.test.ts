/** CONTRACT 7: a night costs as much as its new data: which days are read again, published again, and restated. */
import {
  existsSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TAXONOMY } from '../../../pipeline/contract/taxonomy.ts'
import { copyFolder, makeFolder } from '../../support/folders.ts'
import { fact, runAt } from '../../support/pipeline/in-process.ts'
import {
  copyRaw,
  deliver as deliverRows,
  queryCurrent,
  register,
  withApps,
  writeRaw,
} from '../../support/pipeline/nightly.ts'

let dataDir = ''
/** State after the first night. */
const template = withApps('One', 'Two')

function put(day: string, file: string, ...rows: readonly string[]): void {
  deliverRows(dataDir, day, rows, file)
}

function deliver(day: string, tokens: number, file = 'rows.csv'): void {
  put(day, file, `1,${tokens},0`, `2,${tokens},0`)
}

/** A hundred rows of the first two apps on 2026-01-06. */
function deliverMany(one: number, two: number): void {
  put('2026-01-06', 'rows.csv', ...Array.from({ length: 50 }, () => [`1,${one},0`, `2,${two},0`]).flat())
}

const registerLater = (row: string) => register(dataDir, [row], 'later.csv')

beforeAll(async () => {
  dataDir = template
  deliver('2026-01-05', 10)
  deliver('2026-01-06', 20)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
})

/** The same with so many rows on the second day that one broken row is at most 1 %. */
const manyRows = makeFolder()

beforeAll(async () => {
  dataDir = manyRows
  copyRaw(dataDir, join(template, 'raw'))
  deliverMany(10, 30)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
})

beforeEach(() => {
  dataDir = copyFolder(template)
})

/** A run that records the copied files, which have new change times. */
async function recount(): Promise<void> {
  expect((await runAt(dataDir, '2026-01-07T03:00:00Z')).outcome).toBe('unchanged')
}

describe('load', () => {
  it('reads only new days and days with a late file, these completely', async () => {
    await recount()
    deliver('2026-01-08', 30)
    deliver('2026-01-05', 1, 'late.csv')
    // One day is not over, one is before the floor.
    deliver('2026-01-09', 30)
    deliver('2024-12-31', 30)
    const report = await runAt(dataDir, '2026-01-09T23:59:59Z')
    expect(report.stages[0]).toMatchObject({
      days_loaded: 2,
      days_unchanged: 1,
      days_not_completed: 1,
      days_before_floor: 1,
    })
    expect(await tokensOf('2026-01-05')).toBe('22')
  })

  it('removes the rows of a removed file and day, and reads a day that is a link to a folder', async () => {
    deliver('2026-01-05', 1, 'late.csv')
    const elsewhere = join(makeFolder(), 'day')
    renameSync(join(dataDir, 'raw/usage/date=2026-01-06'), elsewhere)
    symlinkSync(elsewhere, join(dataDir, 'raw/usage/date=2026-01-06'))
    await runAt(dataDir, '2026-01-08T02:00:00Z')
    expect(await tokensOf('2026-01-06')).toBe('40')
    rmSync(join(dataDir, 'raw/usage/date=2026-01-05/late.csv'))
    rmSync(join(dataDir, 'raw/usage/date=2026-01-06'), { recursive: true })
    const report = await runAt(dataDir, '2026-01-08T03:00:00Z', { accepted: ['rows'] })
    expect(fact(report, 'load', 'days_removed')).toBe(1)
    expect(await tokensOf('2026-01-05')).toBe('20')
    expect(await queryCurrent(dataDir, 'SELECT data_through FROM meta')).toEqual([
      { data_through: '2026-01-05' },
    ])
  })

  it('treats a day with empty files as missing', async () => {
    for (const day of ['2026-01-04', '2026-01-07']) put(day, 'rows.csv')
    registerLater('2,Second,public,,,2026-01-07')
    await runAt(dataDir, '2026-01-08T02:00:00Z')
    expect(await queryCurrent(dataDir, 'SELECT first_day, data_through FROM meta')).toEqual([
      { first_day: '2026-01-05', data_through: '2026-01-06' },
    ])
    expect(await queryCurrent(dataDir, "SELECT status FROM coverage WHERE day >= '2026-01-04'")).toEqual(
      ['missing', 'complete', 'complete'].map((status) => ({ status })),
    )
  })
})

describe('publish', () => {
  it('publishes nothing after a file was only touched, or for new days with empty files', async () => {
    await recount()
    const file = join(dataDir, 'raw/usage/date=2026-01-06/rows.csv')
    utimesSync(file, new Date(), new Date())
    writeRaw(dataDir, 'usage/date=2026-01-04/rows.ndjson', '')
    put('2026-01-07', 'rows.csv')
    const report = await runAt(dataDir, '2026-01-08T02:00:00Z')
    expect(fact(report, 'load', 'days_loaded')).toBe(3)
    expect(report).toMatchObject({ outcome: 'unchanged', snapshot: '20260107T020000Z' })
  })

  it('publishes nothing for another broken row of a partial day', async () => {
    deliverMany(1, 1)
    put('2026-01-06', 'more.csv', ...Array.from({ length: 120 }, () => '1,1,0'))
    put('2026-01-06', 'bad.csv', '1,x,0')
    expect((await runAt(dataDir, '2026-01-08T02:00:00Z')).outcome).toBe('published')
    put('2026-01-06', 'worse.csv', '1,y,0')
    const report = await runAt(dataDir, '2026-01-08T03:00:00Z')
    expect(fact(report, 'load', 'rows_rejected')).toBe(2)
    expect(report).toMatchObject({ outcome: 'unchanged', snapshot: '20260108T020000Z' })
  })

  it.each(['2026-01-05', '2026-01-06'])('makes a new snapshot when all rows of %s are gone', async (day) => {
    put(day, 'rows.csv')
    const report = await runAt(dataDir, '2026-01-08T02:00:00Z', { accepted: ['rows'] })
    expect(report.outcome).toBe('published')
    expect(await queryCurrent(dataDir, 'SELECT DISTINCT day FROM app_daily')).toEqual([
      { day: day === '2026-01-05' ? '2026-01-06' : '2026-01-05' },
    ])
  })

  it.each([
    ['a name', () => registerLater('2,Second,public,,,2026-01-07')],
    ['a tag', () => registerLater('2,Two,public,game,,2026-01-07')],
    ['an alias', () => registerLater('2,Two,public,,1,2026-01-07')],
    ['the visibility of an app', () => registerLater('2,Two,hidden,,,2026-01-07')],
    ['the credit line', () => writeRaw(dataDir, 'ATTRIBUTION', 'Source: somebody')],
    ['who used how much', () => deliverMany(30, 10)],
    ['whether all rows were good', () => put('2026-01-06', 'bad.csv', '1,x,0')],
  ])('makes a new snapshot when only %s changed', async (_, change) => {
    dataDir = copyFolder(manyRows)
    change()
    expect((await runAt(dataDir, '2026-01-08T02:00:00Z')).outcome).toBe('published')
  })

  it.each([{ PUBLISHER: 'Another' }, { PUBLIC_URL: 'https://data.example' }])(
    'makes a new snapshot for %j',
    async (settings) => {
      expect((await runAt(dataDir, '2026-01-08T02:00:00Z', { settings })).outcome).toBe('published')
    },
  )

  it('makes a new snapshot for another taxonomy', async () => {
    const { coding } = TAXONOMY
    Object.assign(TAXONOMY, { coding: [...coding, 'reviewer'] })
    try {
      expect((await runAt(dataDir, '2026-01-08T02:00:00Z')).outcome).toBe('published')
    } finally {
      Object.assign(TAXONOMY, { coding })
    }
    const added = "FROM categories WHERE subcategory = 'reviewer'"
    expect(await queryCurrent(dataDir, added)).toEqual([{ category: 'coding', subcategory: 'reviewer' }])
  })

  it('completes a run that was killed just before it switched the pointer, and clears away its leftovers', async () => {
    const left = [
      'snapshots/.building-20260101T030000Z',
      'snapshots/.pruned-20260101T030000Z',
      'warehouse.duckdb.tmp',
    ].map((name) => join(dataDir, name))
    for (const folder of left) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'duckdb_temp_storage_DEFAULT-0.tmp'), 'left over')
    }
    deliver('2026-01-07', 30)
    await runAt(dataDir, '2026-01-08T02:00:00Z')
    const current = join(dataDir, 'current')
    symlinkSync('snapshots/20260107T020000Z', `${current}-before`)
    renameSync(`${current}-before`, current)
    const report = await runAt(dataDir, '2026-01-08T03:00:00Z')
    expect(report).toMatchObject({ outcome: 'published', snapshot: '20260108T020000Z' })
    expect(readlinkSync(current)).toBe('snapshots/20260108T020000Z')
    expect(left.filter((folder) => existsSync(folder))).toEqual([])
  })
})

describe('restatements', () => {
  it('list a changed day, keep earlier ones, and do not list a new day', async () => {
    deliver('2026-01-05', 1, 'late.csv')
    deliver('2026-01-07', 30)
    await runAt(dataDir, '2026-01-08T02:00:00Z')
    registerLater('2,Two,hidden,,,2026-01-07')
    await runAt(dataDir, '2026-01-09T02:00:00Z')
    const restatements = await queryCurrent(dataDir, 'SELECT * FROM restatements ORDER BY ALL')
    const figures = restatements.map(({ as_of, day, apps_changed, tokens_before, tokens_after }) =>
      [as_of, day, apps_changed, tokens_before, tokens_after].join(' | '),
    )
    expect(figures).toEqual([
      '2026-01-08 02:00:00+00 | 2026-01-05 | 2 | 20 | 22',
      '2026-01-09 02:00:00+00 | 2026-01-05 | 1 | 22 | 11',
      '2026-01-09 02:00:00+00 | 2026-01-06 | 1 | 40 | 20',
      '2026-01-09 02:00:00+00 | 2026-01-07 | 1 | 60 | 30',
    ])
    expect(await queryCurrent(dataDir, "SELECT status FROM coverage WHERE day >= '2026-01-04'")).toEqual(
      ['missing', 'restated', 'complete', 'complete'].map((status) => ({ status })),
    )
  })

  it('list a day with changed completion tokens only', async () => {
    put('2026-01-06', 'rows.csv', '1,20,5', '2,20,0')
    await runAt(dataDir, '2026-01-08T02:00:00Z')
    const figures = 'day, apps_changed, tokens_before, tokens_after'
    expect(await queryCurrent(dataDir, `SELECT ${figures} FROM restatements`)).toEqual([
      { day: '2026-01-06', apps_changed: '1', tokens_before: '40', tokens_after: '45' },
    ])
  })
})

async function tokensOf(day: string): Promise<string | null | undefined> {
  const [row] = await queryCurrent(dataDir, `SELECT total_tokens FROM coverage WHERE day = '${day}'`)
  return row?.['total_tokens']
}
