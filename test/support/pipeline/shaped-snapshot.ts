/** Snapshots with candidates over many shapes of data, and random windows on them. */
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect } from 'vitest'
import { readCandidates, readPage, readRanking, type RankingsQuery } from '../../../api/datasets/rankings.ts'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { CATEGORIES, SUBCATEGORIES } from '../../../pipeline/contract/taxonomy.ts'
import { fillFast } from '../../../pipeline/ranking/candidates.ts'
import { makeFolder } from '../folders.ts'
import { withDatabase } from './nightly.ts'
import { randomFrom } from '../random.ts'
import { openSnapshot, publishSnapshot, totalsOf, type OpenSnapshot } from './snapshot.ts'

const FIRST_DAY = '2025-12-20'
/** Five blocks; the first and the last have days without data. */
const DAYS = 140
const LAST_DAY = addDays(FIRST_DAY, DAYS - 1)

/** An app's prompt tokens (and completion tokens) on a day, from its number, the day and a random number from 0 to 1; undefined if idle. */
export type Shape = (app: number, day: number, chance: number) => number | undefined

export const SHAPES = {
  flat: (_app, _day, chance) => Math.floor(chance * 100),
  steep: (app, _day, chance) => Math.floor((1e9 / app ** 2) * (0.5 + chance)),
  sparse: (app, _day, chance) => (chance < 0.1 ? Math.floor(1e6 / app) + 1 : undefined),
  bursty: (app, day, chance) => (day % 30 === app % 30 ? Math.floor(chance * 1e9) : Math.floor(chance * 10)),
  'all ties': () => 7,
  'all nothing': () => 0,
  coming: (app, day, chance) => (day >= app ? Math.floor(chance * 1e6) : undefined),
  going: (app, day, chance) => (day < DAYS - app ? Math.floor(chance * 1e6) : undefined),
  growing: (app, day) => Math.floor((day + 1) ** 2 / app),
  // All usage doubles for two days. Ten days later it hardly grows, except for some small apps.
  bursting: (app, day) => {
    if (app > 40) return day < 60 ? undefined : 1000 * app
    return day === 50 || day === 51 ? 2e6 + app : 1e6 + day
  },
  // Each count fits into BIGINT, but not both together.
  'one giant': (app, day) => (app === 1 && day === 50 ? 4e18 + 7e17 : 1),
  enormous: (app, _day, chance) => Math.floor((9e18 / app) * chance),
  // Neighbours differ by less than a DOUBLE's precision.
  'nearly ties': (app) => 4e17 + app * 64,
} satisfies Readonly<Record<string, Shape>>

/** Numbers of apps, of leaders per subcategory and block, and of prefix sums. */
export type Size = { readonly apps: number; readonly level: number; readonly rowShare: number }

/** One variant has a checkpoint on each day, one has fewer. */
export const SIZES: readonly [Size, ...Size[]] = [
  { apps: 60, level: 6, rowShare: 100 },
  { apps: 150, level: 15, rowShare: 0.3 },
  { apps: 100, level: 3, rowShare: 0.1 },
]

/** Creates and opens a snapshot of apps with this shape of usage. */
export async function makeShaped(
  shape: Shape,
  seed: number,
  { apps, level, rowShare }: Size,
): Promise<OpenSnapshot> {
  const random = randomFrom(seed)
  const tag = () => SUBCATEGORIES[Math.floor(random() * SUBCATEGORIES.length)] ?? 'legal'
  const described = Array.from({ length: apps }, (_, index) => ({
    id: index + 1,
    name: `App ${index + 1}`,
    tags: random() < 0.4 ? [] : [...new Set([tag(), tag()])].toSorted(),
  }))
  const rows = Array.from({ length: apps * DAYS }, (_, index) => {
    const [app, day] = [1 + Math.floor(index / DAYS), index % DAYS]
    const tokens = shape(app, day, random())
    return tokens === undefined ? [] : [{ day: addDays(FIRST_DAY, day), app, tokens, completion: tokens }]
  }).flat()
  const dataDir = makeFolder()
  const folder = await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: LAST_DAY,
    firstDay: FIRST_DAY,
    apps: described,
    daily: rows,
  })
  await withDatabase(async (connection) => {
    await connection.run(`ATTACH '${join(folder, SNAPSHOT_FILE)}' AS snapshot; USE snapshot`)
    const rules = {
      leastApps: 0,
      fewest: 1,
      most: level,
      appShare: 100,
      candidateShare: 1,
      rowShare,
      rows: 0,
    }
    await fillFast(connection, { days: { from: FIRST_DAY, to: LAST_DAY }, totals: totalsOf(rows) }, rules)
    await connection.run('USE memory; DETACH snapshot')
  })
  // Claims so many rows that the candidates are always used.
  return { ...(await openSnapshot(folder)), rows_per_day: Infinity }
}

const queries: fc.Arbitrary<RankingsQuery> = fc
  .record({
    sort: fc.constantFrom(...SORTS),
    from: fc.integer({ min: -3, max: DAYS - 1 }),
    days: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: DAYS })),
    category: fc.option(fc.constantFrom(...CATEGORIES), { freq: 2 }),
    subcategory: fc.option(fc.constantFrom(...SUBCATEGORIES), { freq: 2 }),
    limit: fc.integer({ min: 1, max: 8 }),
    offset: fc.integer({ min: 0, max: 8 }),
  })
  .map(({ from, days, category, subcategory, ...rest }) => ({
    ...rest,
    start_date: addDays(FIRST_DAY, from),
    end_date: addDays(FIRST_DAY, Math.min(from + days, DAYS) - 1),
    category: subcategory === null ? category : null,
    subcategory,
  }))

/**
 * Queries random windows from the candidates and from all apps, and expects the same pages.
 * @param seed draws the same windows each time.
 * @returns how many pages the candidates proved.
 */
export async function expectSamePages(
  snapshot: OpenSnapshot,
  windows: number,
  seed?: number,
): Promise<number> {
  let proven = 0
  await fc.assert(
    fc.asyncProperty(queries, async (query) => {
      const all = await readPage(snapshot, query, 'main')
      const page = await readCandidates(snapshot, query, query.offset + query.limit)
      if (page !== undefined) {
        proven += 1
        // The candidates need not know the ranking's size beyond the page.
        const rowsOf = (rows: typeof page) => rows.map(({ apps: _apps, bound: _bound, ...row }) => row)
        expect(rowsOf(page)).toEqual(rowsOf(all))
      }
      // Then the reply has the page of all apps.
      else if (all.length > 0) return
      // An empty page does not tell the ranking's size.
      const [first] = all.length > 0 ? all : await readPage(snapshot, { ...query, offset: 0 }, 'main')
      expect(await readRanking(snapshot, query)).toEqual({
        rows: all.map(({ measure: _measure, apps: _apps, bound: _bound, ...row }) => row),
        total: Number(first?.apps ?? 0),
      })
    }),
    { numRuns: windows, ...(seed !== undefined && { seed }) },
  )
  return proven
}
