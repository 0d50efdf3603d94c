/** The heads give the rows of the whole table, or say that they cannot: over many shapes of data, windows and filters. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addDays } from '../../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../../pipeline/contract/files.ts'
import { CATEGORIES, SUBCATEGORIES } from '../../../../pipeline/contract/taxonomy.ts'
import { fillFast } from '../../../../pipeline/ranking/windows.ts'
import type { HeadRules } from '../../../../pipeline/ranking/candidates.ts'
import { sqlFile } from '../../../../pipeline/duckdb/statements.ts'
import { readRanking } from '../../../../api/datasets/rankings/read-ranking.ts'
import { readBound, readHeads, readWhole } from '../../../../api/datasets/rankings/ranking-pages.ts'
import type { RankingsQuery } from '../../../../api/datasets/rankings/query.ts'
import { openSnapshot, type Snapshot } from '../../../../api/datasets/snapshots/open-snapshot.ts'
import { TemporaryFolders } from '../../../support/nightly.ts'
import { randomFrom } from '../../../support/random.ts'
import { publishSnapshot } from '../../../support/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const FIRST_DAY = '2025-12-20'
// Running totals are written 64 or 128 days at a time.
const DAYS = 140
const LAST_DAY = addDays(FIRST_DAY, DAYS - 1)

/** Prompt tokens of an app on a day, and as many completion tokens, from its number, the day and a random number from 0 to 1; nothing where it is idle. */
type Shape = (app: number, day: number, chance: number) => number | undefined

const SHAPES: Readonly<Record<string, Shape>> = {
  flat: (_app, _day, chance) => Math.floor(chance * 100),
  steep: (app, _day, chance) => Math.floor((1e9 / app ** 2) * (0.5 + chance)),
  sparse: (app, _day, chance) => (chance < 0.1 ? Math.floor(1e6 / app) + 1 : undefined),
  bursty: (app, day, chance) => (day % 30 === app % 30 ? Math.floor(chance * 1e9) : Math.floor(chance * 10)),
  'all ties': () => 7,
  'all nothing': () => 0,
  coming: (app, day, chance) => (day >= app ? Math.floor(chance * 1e6) : undefined),
  going: (app, day, chance) => (day < DAYS - app ? Math.floor(chance * 1e6) : undefined),
  growing: (app, day) => Math.floor((day + 1) ** 2 / app),
  // Neither count alone is too many for BIGINT, but both together.
  'one giant': (app, day) => (app === 1 && day === 50 ? 4e18 + 7e17 : 1),
  enormous: (app, _day, chance) => Math.floor((9e18 / app) * chance),
}

const INSERT_DAYS = `
  INSERT INTO app_daily
  SELECT r.day, r.app_id, 1, r.tokens, r.tokens
  FROM (
    SELECT unnest(from_json($1, '[{"day": "DATE", "app_id": "BIGINT", "tokens": "BIGINT"}]'), recursive := true)
  ) AS r`

const COVER_DAYS = `
  UPDATE coverage SET total_tokens = u.total_tokens
  FROM (
    SELECT d.day, CAST(sum(d.prompt_tokens) + sum(d.completion_tokens) AS DECIMAL(38, 0)) AS total_tokens
    FROM app_daily AS d GROUP BY d.day
  ) AS u
  WHERE u.day = coverage.day`

/** How many apps, how many of them are heads per tag and block, and how many running totals there may be. */
interface Size {
  readonly apps: number
  readonly level: number
  readonly share: number
  /** Whether a night before found the heads of the first blocks, when some apps had other tags. */
  readonly settled?: boolean
}

// Running totals for each day, and for one day in some.
const SIZES: readonly Size[] = [
  { apps: 60, level: 6, share: 100 },
  { apps: 150, level: 15, share: 0.3 },
  { apps: 100, level: 10, share: 100, settled: true },
]

/** The first two blocks of days end before it. */
const SETTLED_THROUGH = addDays(FIRST_DAY, 80)

/** A snapshot of `apps` apps of this shape, of which the first `level` per tag and block are heads. */
async function makeSnapshot(shape: Shape, seed: number, { apps, level, share, settled = false }: Size) {
  const random = randomFrom(seed)
  const tag = () => SUBCATEGORIES[Math.floor(random() * SUBCATEGORIES.length)] ?? 'legal'
  const dataDir = folders.make()
  const folder = await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: LAST_DAY,
    firstDay: FIRST_DAY,
    apps: Array.from({ length: apps }, (_, index) => ({
      id: index + 1,
      name: `App ${index + 1}`,
      tags: random() < 0.4 ? [] : [...new Set([tag(), tag()])].toSorted(),
    })),
    daily: [],
  })
  const rows = Array.from({ length: apps * DAYS }, (_, index) => {
    const [app_id, day] = [1 + Math.floor(index / DAYS), index % DAYS]
    const tokens = shape(app_id, day, random())
    return tokens === undefined ? [] : [{ day: addDays(FIRST_DAY, day), app_id, tokens }]
  })
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run(`ATTACH '${join(folder, SNAPSHOT_FILE)}' AS snapshot; USE snapshot`)
  await connection.run(INSERT_DAYS, [JSON.stringify(rows.flat())])
  await connection.run(COVER_DAYS)
  const rules = { levels: [level], share, appShare: 100 }
  if (settled) await fillNightBefore(connection, rules)
  await fillFast(
    connection,
    { from: FIRST_DAY, to: LAST_DAY },
    { rules, ...(settled && { settled: { through: SETTLED_THROUGH, isNew: false } }) },
  )
  await connection.run('USE memory; DETACH snapshot')
  connection.closeSync()
  instance.closeSync()
  // The heads are asked as if there were more rows than are worth adding up.
  const snapshot: Snapshot = { ...(await openSnapshot(folder)), rowsPerDay: Infinity }
  return { folder, snapshot, remove: () => rmSync(dataDir, { recursive: true }) }
}

/** Fills the schema as of ten days later than what is settled, and takes it out again; then some apps get other tags. */
async function fillNightBefore(connection: DuckDBConnection, rules: HeadRules): Promise<void> {
  await connection.run(
    `ATTACH ':memory:' AS warehouse; USE warehouse; ${sqlFile('warehouse.sql')} USE snapshot`,
  )
  await fillFast(
    connection,
    { from: FIRST_DAY, to: addDays(SETTLED_THROUGH, 10) },
    { rules, settled: { through: SETTLED_THROUGH, isNew: true } },
  )
  await connection.run('DROP SCHEMA snapshot.fast CASCADE')
  await connection.run("UPDATE apps SET subcategories = ['game', 'legal'] WHERE app_id % 15 = 1")
}

const queries: fc.Arbitrary<RankingsQuery> = fc
  .record({
    sort: fc.constantFrom(...SORTS),
    from: fc.integer({ min: -3, max: DAYS + 2 }),
    days: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: DAYS })),
    category: fc.option(fc.constantFrom(...CATEGORIES), { freq: 2 }),
    subcategory: fc.option(fc.constantFrom(...SUBCATEGORIES), { freq: 2 }),
    limit: fc.integer({ min: 1, max: 8 }),
    offset: fc.integer({ min: 0, max: 8 }),
  })
  .map(({ from, days, category, subcategory, ...rest }) => ({
    ...rest,
    start: addDays(FIRST_DAY, from),
    end: addDays(FIRST_DAY, from + days - 1),
    category: subcategory === null ? category : null,
    subcategory,
  }))

/** Twice as many windows as are drawn: each is asked with the one three days later. The daily run does with fewer. */
const PER_SHAPE = process.env['CI'] ? 210 : 84

describe('readRanking', () => {
  it.each(Object.entries(SHAPES))(
    `gives the rows of all apps for ${PER_SHAPE} windows of data that are %s`,
    async (name, shape) => {
      let sure = 0
      for (const size of SIZES) {
        const { snapshot, remove } = await makeSnapshot(shape, size.apps + name.length, size)
        await fc.assert(
          fc.asyncProperty(queries, async (query) => {
            const [heads, bound] = [await readHeads(snapshot, query), await readBound(snapshot, query)]
            if ((heads?.least ?? -1n) > (bound ?? 0n)) sure += 1
            // What the first window took is what the second one is expected to take.
            const later = { ...query, start: addDays(query.start, 3), end: addDays(query.end, 3) }
            for (const window of [query, later]) {
              expect(await readRanking(snapshot, window)).toEqual((await readWhole(snapshot, window)).rows)
            }
          }),
          { numRuns: PER_SHAPE / 2 / SIZES.length },
        )
        await snapshot.close()
        remove()
      }
      // Where few apps have nearly all usage, the heads alone tell often enough.
      expect(sure).toBeGreaterThan(name === 'steep' ? PER_SHAPE / 6 : -1)
    },
  )
})

describe('readRanking where the heads cannot tell', () => {
  const [BURST, LATER, LESS, LEAST] = [50, 60, 63, 95]
  // On two days everybody's usage is twice as much; ten days later it hardly grows, but that of some small apps does. In
  // each of the two blocks after that everybody uses less.
  const burst: Shape = (app, day) => {
    if (app > 40) return day < LATER ? undefined : 1000 * app
    if (day === BURST || day === BURST + 1) return 2e6 + app
    return day < LESS ? 1e6 + day : day < LEAST ? 850_000 : 600_000
  }
  let made: Awaited<ReturnType<typeof makeSnapshot>>

  beforeAll(async () => (made = await makeSnapshot(burst, 1, { apps: 60, level: 1, share: 100 })))
  afterAll(() => made.snapshot.close())

  /** The snapshot, and who of it is asked. */
  function observed() {
    const { snapshot } = made
    const asked: string[] = []
    const queryHeads: Snapshot['queryHeads'] = async (sql, values) => {
      asked.push(sql.includes('fast.outside') ? 'bound' : 'heads')
      return (await snapshot.queryHeads?.(sql, values)) ?? []
    }
    const amongContenders: Snapshot['amongContenders'] = (work) => {
      asked.push('contenders')
      return snapshot.amongContenders(work)
    }
    return { asked, snapshot: { ...snapshot, queryHeads, amongContenders } }
  }

  function fastest(day: number, limit = 5): RankingsQuery {
    const [start, end] = [addDays(FIRST_DAY, day), addDays(FIRST_DAY, day)]
    return { sort: 'trending', start, end, category: null, subcategory: null, limit, offset: 0 }
  }

  it('bounds all who are no heads, on each single day', async () => {
    const { snapshot } = made
    for (let day = 0; day < DAYS; day += 1) {
      const query: RankingsQuery = { ...fastest(day, 60), sort: 'popular' }
      const heads = new Set((await readHeads(snapshot, query))?.rows.map(({ app_id }) => app_id))
      const [most] = (await readWhole(snapshot, query)).rows.filter(({ app_id }) => !heads.has(app_id))
      expect(await readBound(snapshot, query)).toBeGreaterThanOrEqual(BigInt(most?.total_tokens ?? 0))
    }
  })

  it('works out growth over few rows of a subcategory without asking the heads', async () => {
    const { snapshot, asked } = observed()
    const few = { ...snapshot, rowsPerDay: 3500 }
    const all = { ...fastest(BURST), end: addDays(FIRST_DAY, BURST + 6) }
    const growth: RankingsQuery = { ...all, subcategory: 'game' }
    expect(await readRanking(few, growth)).toEqual((await readWhole(snapshot, growth)).rows)
    expect(asked).toEqual([])
    for (const query of [all, { ...growth, sort: 'popular' } as const]) {
      await readRanking(few, query)
      expect(asked.splice(0).slice(0, 2)).toEqual(['heads', 'bound'])
    }
    await readRanking({ ...snapshot, rowsPerDay: 3600 }, growth)
    expect(asked.slice(0, 2)).toEqual(['heads', 'bound'])
  })

  it('asks those who are expected on a page of a kind that the heads could not give before', async () => {
    const { snapshot, asked } = observed()
    await readRanking(snapshot, fastest(BURST))
    expect(asked.splice(0)).toEqual(['heads', 'bound', 'contenders'])
    expect(await readRanking(snapshot, fastest(BURST + 1))).toEqual(
      (await readWhole(snapshot, fastest(BURST + 1))).rows,
    )
    expect(asked.splice(0)).toEqual(['bound', 'contenders'])
    await readRanking(snapshot, fastest(BURST, 6))
    expect(asked).toEqual(['heads', 'bound', 'contenders'])
  })

  it('spares the heads where others come near what the page is expected to take', async () => {
    const { snapshot, asked } = observed()
    await readRanking(snapshot, fastest(BURST))
    asked.splice(0)
    await readRanking(snapshot, fastest(LESS))
    expect(asked.splice(0, 2)).toEqual(['bound', 'contenders'])
    asked.splice(0)
    await readRanking(snapshot, fastest(LEAST))
    expect(asked.splice(0, 2)).toEqual(['bound', 'heads'])
  })

  it('expects what the newest page of its kind took', async () => {
    const { snapshot, asked } = observed()
    await readRanking(snapshot, fastest(BURST))
    await readRanking(snapshot, fastest(BURST + 1))
    asked.splice(0)
    await readRanking(snapshot, fastest(LEAST))
    expect(asked.splice(0, 2)).toEqual(['bound', 'contenders'])
  })

  it('asks once more when the page takes less than was expected', async () => {
    const { snapshot, asked } = observed()
    await readRanking(snapshot, fastest(BURST))
    asked.splice(0)
    const rows = await readRanking(snapshot, fastest(LATER))
    expect(asked).toEqual(['bound', 'contenders', 'heads', 'bound', 'contenders'])
    expect(rows.map(({ app_id }) => app_id)).toEqual([60n, 59n, 58n, 57n, 56n])
  })
})

describe('what a night before found of the settled days', () => {
  const rules = { levels: [2], share: 100, appShare: 100 }
  const settled = { through: SETTLED_THROUGH, isNew: false }

  /** The tags of an app on the night before. */
  const tags = (app: string) => `CASE WHEN ${app} > 4 THEN ['game'] ELSE [] END`

  /** The bounds of the first block on a night whose apps differ from those of the night before by `change`. */
  async function boundsAfter(change: string) {
    const instance = await DuckDBInstance.create(':memory:')
    const connection = await instance.connect()
    await connection.run(`ATTACH ':memory:' AS snapshot; USE snapshot; ${sqlFile('snapshot.sql')}`)
    await connection.run(`
      INSERT INTO apps SELECT i, 'App ' || i, ${tags('i')} FROM range(1, 9) AS t (i);
      INSERT INTO app_daily
      SELECT DATE '${FIRST_DAY}' + CAST(d AS INTEGER), i, 1, 1000 * i, 0
      FROM range(${DAYS}) AS s (d), range(1, 9) AS t (i) ORDER BY ALL`)
    await fillNightBefore(connection, rules)
    await connection.run(`
      UPDATE warehouse.kept_tops SET next_total = 7;
      UPDATE apps SET subcategories = ${tags('app_id')};
      ${change}`)
    await fillFast(connection, { from: FIRST_DAY, to: LAST_DAY }, { rules, settled })
    const bounds = await connection.runAndReadAll(
      'SELECT most_in_all FROM fast.outsiders ORDER BY first_day LIMIT 1',
    )
    const heads = await connection.runAndReadAll(
      'SELECT CAST(app_id AS INTEGER) FROM fast.apps ORDER BY app_id',
    )
    connection.closeSync()
    instance.closeSync()
    return { bound: Number(bounds.getRowsJson()[0]?.[0]), heads: heads.getRowsJson().flat() }
  }

  it('is taken over', async () => {
    expect(await boundsAfter('')).toEqual({ bound: 7, heads: [3, 4, 7, 8] })
  })

  it('is taken over, and an app with other tags is a head besides', async () => {
    const change = "UPDATE apps SET subcategories = ['game'] WHERE app_id = 1"
    expect(await boundsAfter(change)).toEqual({ bound: 7, heads: [1, 3, 4, 7, 8] })
  })

  it('is found anew when too many apps have other tags', async () => {
    const { bound } = await boundsAfter("UPDATE apps SET subcategories = ['game'] WHERE app_id < 4")
    expect(bound).toBeGreaterThan(7)
  })

  it('is found anew when nothing is there', async () => {
    expect((await boundsAfter('DELETE FROM warehouse.kept_tops')).bound).toBeGreaterThan(7)
  })
})

it('a snapshot without heads is asked as a whole', async () => {
  const dataDir = folders.make()
  const folder = await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: LAST_DAY,
    apps: [{ id: 1, name: 'App' }],
    daily: [{ day: LAST_DAY, app: 1, tokens: 7 }],
  })
  const snapshot = await openSnapshot(folder)
  expect(snapshot.queryHeads).toBeUndefined()
  await snapshot.close()
})
