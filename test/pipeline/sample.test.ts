/**
 * CONTRACT 4.2: The pipeline over the bundled sample must give the tables that were published for the same weeks
 * (test/golden/published/), row for row.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { publish, queryCurrent, TemporaryFolders } from '../support/pipeline/nightly.ts'
import { REPOSITORY } from '../support/processes.ts'
import type { TextRow } from '../support/pipeline/nightly.ts'
import { readCsv } from '../support/pipeline/oracle.ts'

const PUBLISHED = join(REPOSITORY, 'test', 'golden', 'published')
const SAMPLE = join(REPOSITORY, 'data', 'sample')

/** The published tables end at this rank. */
const PUBLISHED_ROWS = 50

const usage = readPublished('usage_weekly.csv')
const rankings = readPublished('rankings_weekly.csv')
const weeks = [...new Set(usage.map((row) => row.window_end))].toSorted()
const lists = [
  { category: 'all', subcategory: '' },
  { category: 'coding', subcategory: '' },
  { category: 'coding', subcategory: 'cli-agent' },
  { category: 'coding', subcategory: 'cloud-agent' },
  { category: 'coding', subcategory: 'ide-extension' },
  { category: 'coding', subcategory: 'programming-app' },
] as const

interface List {
  readonly week: string
  readonly category: string
  readonly subcategory: string
}

interface Absence extends List {
  readonly app: string
  readonly rank: number
}

/**
 * Apps in our list that are missing in the published one. ZCode got its tag between 2026-08-17 and 2026-08-24: it is in both
 * lists from then on and in neither before, though its tokens would have put it there. A snapshot has the tags of its own
 * time for all days.
 */
const NOT_YET_TAGGED: readonly Absence[] = [
  { week: '2026-07-27', subcategory: '', rank: 17 },
  { week: '2026-07-27', subcategory: 'programming-app', rank: 6 },
  { week: '2026-08-03', subcategory: '', rank: 18 },
  { week: '2026-08-03', subcategory: 'programming-app', rank: 6 },
  { week: '2026-08-10', subcategory: '', rank: 20 },
  { week: '2026-08-10', subcategory: 'programming-app', rank: 7 },
  { week: '2026-08-17', subcategory: '', rank: 20 },
  { week: '2026-08-17', subcategory: 'programming-app', rank: 7 },
].map((place) => ({ ...place, category: 'coding', app: '2823243' }))

/**
 * Apps with a published trending rank that contradicts the published figures of the weeks before, with their ranks among the
 * compared apps: in the published table, and by the published figures. Each has the rank of an app without earlier traffic:
 * its growth is the whole week. The source restates its figures, so the earlier weeks probably came under this id after the
 * table was made. Multi-Agent Arena grew by 9 011 792 791 tokens to 14 616 405 508 and by 8 134 602 442 to 17 689 137 841,
 * while its neighbours in the table grew by 15.2 and 11.5, and by 18.2 and 17.4 billion; pi grew by 6 446 602 725 to
 * 16 466 172 967, its neighbours by 16.5 and 16.3 billion.
 */
const COUNTED_AS_NEW = [
  { week: '2026-08-17', app: '4069892', published: 21, computed: 23 },
  { week: '2026-08-24', app: '4069892', published: 28, computed: 34 },
  { week: '2026-08-31', app: '3282295', published: 21, computed: 32 },
] as const

const folders = new TemporaryFolders()
const dataDir = folders.make()

beforeAll(async () => {
  await publish(dataDir, '2026-09-01T02:00:00Z', '--with-sample')
})

afterAll(() => folders.removeAll())

it('the sample equals its source figures byte for byte', () => {
  const output = folders.make('sample')
  const made = spawnSync(process.execPath, [join(SAMPLE, 'make.ts'), PUBLISHED, output], { encoding: 'utf8' })
  expect(made.stderr).toContain('42 days and 215 apps')
  expect(made.status).toBe(0)
  const files = filesBelow(output)
  expect(files).toEqual(filesBelow(SAMPLE).filter((file) => file !== 'make.ts'))
  for (const file of files) {
    expect(readFileSync(join(output, file), 'utf8'), file).toBe(readFileSync(join(SAMPLE, file), 'utf8'))
  }
})

it('the sample is under 1 MB and names its source', () => {
  const bytes = filesBelow(SAMPLE).reduce((total, file) => total + statSync(join(SAMPLE, file)).size, 0)
  expect(bytes).toBeLessThan(1_000_000)
  expect(readFileSync(join(SAMPLE, 'ATTRIBUTION'), 'utf8')).toMatch(
    /OpenRouter \(openrouter\.ai\/apps\).*CC BY 4\.0/,
  )
})

it('the snapshot carries the credit line of the sample', async () => {
  const [meta] = await queryCurrent(dataDir, 'SELECT sources, data_through, first_day FROM meta')
  expect(meta).toEqual({
    sources: readFileSync(join(SAMPLE, 'ATTRIBUTION'), 'utf8').trim(),
    data_through: '2026-08-31',
    first_day: '2026-07-21',
  })
})

describe.each(weeks)('popular in the week to %s', (week) => {
  it.each(lists)('$category $subcategory equals the published table', async ({ category, subcategory }) => {
    const list = { week, category, subcategory }
    const published = publishedRows(list)
    expect(published.length).toBeGreaterThan(0)
    const ours = await popular(list)
    const absent = absencesFrom(list)
    expect(ours.filter((row) => absent.some((absence) => isSame(absence, row)))).toHaveLength(absent.length)
    const compared = ours
      .filter((row) => !absent.some((absence) => isSame(absence, row)))
      .map((row, index) => ({ ...row, rank: String(index + 1) }))
    expect(compared.slice(0, PUBLISHED_ROWS)).toEqual(published)
  })
})

it.each(NOT_YET_TAGGED)('$app is absent from $category $subcategory of $week', (absence) => {
  expect(publishedRows(absence).map((row) => row.app_id)).not.toContain(absence.app)
  expect(weekly(absence.week, absence.app)).toBeDefined()
})

/** Compares apps with three earlier weeks in the data; the first three weeks have none. */
describe.each(weeks.slice(3))('trending in the week to %s', (week) => {
  it('has the published order', async () => {
    const published = publishedTrending(week)
    expect(published.length).toBeGreaterThan(20)
    // No app of the published table may be missing: our list is cut at the same rank.
    expect(byGrowth(await trending(week), newcomersOf(week)).slice(0, published.length)).toEqual(published)
  })

  it('needs each of the listed exceptions', async () => {
    const published = publishedTrending(week)
    const computed = byGrowth(await trending(week), [])
    for (const { app, ...places } of COUNTED_AS_NEW.filter((exception) => exception.week === week)) {
      expect(published.indexOf(app) + 1).toBe(places.published)
      expect(computed.indexOf(app) + 1).toBe(places.computed)
    }
  })
})

function newcomersOf(week: string): string[] {
  return COUNTED_AS_NEW.filter((exception) => exception.week === week).map((exception) => exception.app)
}

function publishedTrending(week: string): string[] {
  return rankings
    .filter((row) => row.window_end === week && row.sort === 'trending' && isComplete(row.app_id, week))
    .map((row) => row.app_id)
}

/** Our trending rows of apps that are in the data in this week and the three before it. */
async function trending(week: string): Promise<TextRow[]> {
  const rows = await queryCurrent(
    dataDir,
    `SELECT app_id, total_tokens, excess_tokens FROM trending(${windowOf(week)}) ORDER BY rank`,
  )
  return rows.filter((row) => isComplete(row['app_id'] ?? '', week))
}

/** Our order, with the growth of newcomers set to all their tokens. */
function byGrowth(rows: readonly TextRow[], newcomers: readonly string[]): string[] {
  const growth = (row: TextRow) =>
    BigInt(row[newcomers.includes(row['app_id'] ?? '') ? 'total_tokens' : 'excess_tokens'] ?? 0)
  return rows
    .toSorted((left, right) => (growth(left) === growth(right) ? 0 : growth(left) < growth(right) ? 1 : -1))
    .map((row) => row['app_id'] ?? '')
}

function isComplete(app: string, week: string): boolean {
  const four = weeks.slice(weeks.indexOf(week) - 3, weeks.indexOf(week) + 1)
  return four.every((each) => weekly(each, app) !== undefined)
}

/** A published table with its figures, by rank. */
function publishedRows({ week, category, subcategory }: List) {
  return rankings
    .filter((row) => row.window_end === week && row.category === category && row.subcategory === subcategory)
    .filter((row) => row.sort === 'popular')
    .map(({ rank, app_id }) => {
      const figures = weekly(week, app_id)
      return {
        rank,
        app_id,
        total_tokens: figures?.total_tokens,
        total_requests: figures?.total_requests,
      }
    })
}

function popular({ week, category, subcategory }: List): Promise<TextRow[]> {
  const filter = [
    category === 'all' ? '' : `, category := '${category}'`,
    subcategory === '' ? '' : `, subcategory := '${subcategory}'`,
  ].join('')
  return queryCurrent(
    dataDir,
    `SELECT rank, app_id, total_tokens, total_requests FROM popular(${windowOf(week)}${filter})`,
  )
}

function absencesFrom({ week, category, subcategory }: List): Absence[] {
  return NOT_YET_TAGGED.filter(
    (absence) =>
      absence.week === week && absence.category === category && absence.subcategory === subcategory,
  )
}

function isSame(absence: Absence, row: TextRow): boolean {
  return row['app_id'] === absence.app && row['rank'] === String(absence.rank)
}

/** The seven days that end on `lastDay`, as the two arguments of a macro. */
function windowOf(lastDay: string): string {
  return `DATE '${lastDay}' - 6, '${lastDay}'`
}

function weekly(week: string, app: string) {
  return usage.find((row) => row.window_end === week && row.app_id === app)
}

/** The rows of a published CSV file; a missing column and an empty cell are an empty text. */
function readPublished(file: 'usage_weekly.csv' | 'rankings_weekly.csv') {
  return readCsv(readFileSync(join(PUBLISHED, file), 'utf8')).map((row) => {
    const cell = (column: string) => row?.[column] ?? ''
    return {
      window_end: cell('window_end'),
      category: cell('category'),
      subcategory: cell('subcategory'),
      sort: cell('sort'),
      rank: cell('rank'),
      app_id: cell('app_id'),
      total_tokens: cell('total_tokens'),
      total_requests: cell('total_requests'),
    }
  })
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'README.md')
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted()
}
