/** The heads give the rows of the whole table, or say that they cannot: over many shapes of data, windows and filters. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import * as fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { CATEGORIES, SNAPSHOT_FILE, SORTS, SUBCATEGORIES, addDays } from '../../../pipeline/contract.ts'
import { fillFast } from '../../../pipeline/fast.ts'
import { readHeads, readWhole } from '../../../api/datasets/read-ranking.ts'
import type { RankingsQuery } from '../../../api/datasets/query.ts'
import { openSnapshot } from '../../../api/datasets/snapshot.ts'
import { TemporaryFolders } from '../../support/nightly.ts'
import { randomFrom } from '../../support/random.ts'
import { publishSnapshot } from '../../support/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const FIRST_DAY = '2025-12-20'
const DAYS = 120
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
}

// Running totals for each day, and for one day in some.
const SIZES: readonly Size[] = [
  { apps: 60, level: 6, share: 100 },
  { apps: 150, level: 15, share: 0.3 },
]

/** A snapshot of `apps` apps of this shape, of which the first `level` per tag and block are heads. */
async function makeSnapshot(shape: Shape, seed: number, { apps, level, share }: Size) {
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
  await fillFast(
    connection,
    { firstDay: FIRST_DAY, dataThrough: LAST_DAY },
    { levels: [level], share, appShare: 100 },
  )
  await connection.run('USE memory; DETACH snapshot')
  connection.closeSync()
  instance.closeSync()
  return { folder, snapshot: await openSnapshot(folder), remove: () => rmSync(dataDir, { recursive: true }) }
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

const PER_SHAPE = 300

describe('readHeads', () => {
  const sure = new Map<string, number>()

  it.each(Object.entries(SHAPES))(
    `gives the rows of the whole table, or none, for ${PER_SHAPE} windows of data that are %s`,
    async (name, shape) => {
      for (const size of SIZES) {
        const { snapshot, remove } = await makeSnapshot(shape, size.apps + name.length, size)
        await fc.assert(
          fc.asyncProperty(queries, async (query) => {
            const heads = await readHeads(snapshot, query)
            if (heads === undefined) return
            sure.set(name, (sure.get(name) ?? 0) + 1)
            expect(heads).toEqual(await readWhole(snapshot, query))
          }),
          { numRuns: PER_SHAPE / 2 },
        )
        snapshot.close()
        remove()
      }
    },
  )

  it('is sure of itself where it should be', () => {
    expect(sure.get('steep') ?? 0).toBeGreaterThan(PER_SHAPE / 3)
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
  snapshot.close()
})
