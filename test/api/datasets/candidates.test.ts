/**
 * CONTRACT 4.2: the candidates give the page of all apps, or report that they cannot. test/system/ draws thousands of
 * windows.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import type { RankingsQuery } from '../../../api/datasets/rankings.ts'
import { readCandidates, readPage, readRanking } from '../../../api/datasets/rankings.ts'
import type { OpenSnapshot as Snapshot } from '../../support/snapshots.ts'
import {
  DAYS,
  FIRST_DAY,
  makeShaped,
  type Shape,
  type Shaped,
} from '../../support/pipeline/shaped-snapshot.ts'

describe('over apps that gain and lose rank', () => {
  const [BURST, LATER] = [50, 60]
  // All usage doubles for two days. Ten days later it hardly grows, except for some small apps.
  const burst: Shape = (app, day) => {
    if (app > 40) return day < LATER ? undefined : 1000 * app
    return day === BURST || day === BURST + 1 ? 2e6 + app : 1e6 + day
  }
  let made: Shaped
  let snapshot: Snapshot

  beforeAll(async () => {
    made = await makeShaped(burst, 1, { apps: 60, level: 1, rowShare: 100 })
    snapshot = made.snapshot
  })
  afterAll(() => made.remove())

  function oneDay(day: number, limit = 5): RankingsQuery {
    const date = addDays(FIRST_DAY, day)
    return { sort: 'trending', start: date, end: date, category: null, subcategory: null, limit, offset: 0 }
  }

  it('the upper bound holds for every app outside the candidates, on single days of every block', async () => {
    for (let day = 0; day < DAYS; day += 7) {
      const query: RankingsQuery = { ...oneDay(day, 60), sort: 'popular' }
      const candidates = await readPage(snapshot, query, 'fast')
      const ids = new Set(candidates.map(({ app_id }) => app_id))
      const [most] = (await readPage(snapshot, query, 'main')).filter(({ app_id }) => !ids.has(app_id))
      expect(BigInt(candidates[0]?.bound ?? 0)).toBeGreaterThanOrEqual(BigInt(most?.total_tokens ?? 0))
    }
  })

  it('a page that other apps may reach is read from all apps', async () => {
    expect(await readCandidates(snapshot, oneDay(LATER), 5)).toBeUndefined()
    const ids = (await readRanking(snapshot, oneDay(LATER))).rows.map(({ app_id }) => app_id)
    expect(ids).toEqual([60n, 59n, 58n, 57n, 56n])
  })

  it.each([
    ['a window of few rows', { rowsPerDay: 7 }],
    ['a snapshot without candidates', { hasCandidates: false }],
  ])('%s is read from all apps at once', async (_what, facts) => {
    const asked: string[] = []
    const few: Snapshot = {
      ...snapshot,
      ...facts,
      query: (sql, values) => {
        asked.push(sql)
        return snapshot.query(sql, values)
      },
    }
    expect(await readRanking(few, oneDay(BURST))).toEqual(await readRanking(snapshot, oneDay(BURST)))
    expect(asked).toEqual([expect.stringContaining('main.trending')])
  })
})
