/** CONTRACT 9: data that is valid but incomplete: an unusual snapshot is blocked with its figures, and published once it is accepted. */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { readLastRun } from '../../../pipeline/contract/last-run.ts'
import { copyFolder, makeFolder } from '../../support/folders.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import {
  copyRaw,
  currentSnapshot,
  deliver as deliverRows,
  publish,
  queryCurrent,
  register,
  runCommand,
} from '../../support/pipeline/nightly.ts'

/** A Tuesday with eight earlier Tuesdays in the data. */
const LAST = '2026-03-03'
const WEEKS = [1, 2, 3, 4, 5, 6, 7, 8]

let dataDir = ''
/** State after the night before. */
const template = makeFolder()

/** Delivers a row of each app; an app that is named twice has two rows. */
function deliver(day: string, tokens: number, apps = [1, 2]): void {
  const rows = apps.map((app) => `${app},${tokens},0`)
  deliverRows(dataDir, day, rows)
}

/** The weeks before a day. */
function deliverWeeks(day: string, tokens: number, weeks: readonly number[] = WEEKS): void {
  for (const week of weeks) deliver(addDays(day, -7 * week), tokens)
}

beforeAll(async () => {
  dataDir = template
  register(dataDir, ['1,One,public,,,2025-01-01'], 'one.csv')
  register(dataDir, ['2,Two,public,,,2025-01-01'], 'two.csv')
  deliverWeeks(LAST, 100)
  await runAt(dataDir, `${LAST}T02:00:00Z`)
})
beforeEach(() => {
  dataDir = copyFolder(template)
})
afterEach(() => vi.unstubAllEnvs())

/** A run of the night after LAST, as an operator starts it. */
function run(...options: string[]) {
  return runCommand(dataDir, 'run', '--as-of', '2026-03-04T02:00:00Z', ...options)
}

/** Nothing was published, and the previous snapshot is unchanged. */
async function expectBlocked(...texts: string[]): Promise<void> {
  const before = currentSnapshot(dataDir)
  const ended = await run()
  expect(ended.code).toBe(1)
  for (const text of texts) expect(ended.stderr).toContain(text)
  expect(ended.stderr).toContain('20260303T020000Z stays the newest snapshot')
  expect(currentSnapshot(dataDir)).toBe(before)
  expect(readLastRun(dataDir)?.outcome).toBe('blocked')
}

/** The findings of a text about volumes, without the allowed range. */
function volumesIn(text: string): string[] {
  return Array.from(text.matchAll(/volume: (2026.*), the median/g), ([, finding]) => String(finding))
}

describe('volume', () => {
  it('of a day below half the median of its weekday is blocked, until it is accepted', async () => {
    deliver(LAST, 49)
    await expectBlocked(
      `volume: ${LAST} has 98 tokens, 0.49 times 200, the median of the 8 Tuesdays before it; allowed are 0.5 to 5 times`,
      'npm run nightly -- run --accept volume',
    )
    const ended = await run('--accept', 'volume', '--json')
    expect(ended.stderr).toContain('Let through by --accept, volume: ')
    const accepted = expect.stringMatching(/"accepted": \[\s+"volume"/)
    expect(ended).toMatchObject({ code: 0, stdout: accepted })
  })

  it('that is corrected after a block needs no option, and the thresholds are settings', async () => {
    deliver(LAST, 90)
    vi.stubEnv('GATE_VOLUME_LOW', '0.95')
    await expectBlocked('allowed are 0.95 to 5 times')
    deliver(LAST, 95)
    expect((await run()).code).toBe(0)
  })

  it('is compared per weekday, tokens and requests, and blocked beyond a threshold but not at it', async () => {
    const days = ['2026-02-25', '2026-02-26', '2026-02-27', '2026-02-28'] as const
    for (const day of days) deliverWeeks(day, 100)
    deliver(days[0], 501)
    deliver(days[1], 50)
    deliver(days[2], 500)
    deliver(days[3], 18, Array<number>(11).fill(1))
    // Mondays have no history.
    deliver('2026-03-02', 1)
    deliver(LAST, 100)
    const ended = await run('--accept', 'volume', '--json')
    expect(volumesIn(ended.stderr)).toEqual([
      '2026-02-25 has 1002 tokens, 5.01 times 200',
      '2026-02-28 has 11 requests, 5.5 times 2',
    ])
    expect(JSON.parse(ended.stdout).outcome).toBe('published')
  })

  it('of a day that fills a gap, and of a published day with changed figures, is compared like a new day', async () => {
    rmSync(join(dataDir, 'raw/usage/date=2026-02-24'), { recursive: true })
    deliver(LAST, 100)
    await runAt(dataDir, '2026-03-04T01:00:00Z', { accepted: ['rows'] })
    deliver('2026-02-24', 1)
    // As a file that was copied under another name.
    deliver('2026-02-17', 100, Array<number>(12).fill(1))
    const ended = await run()
    expect(ended.code).toBe(1)
    expect(volumesIn(ended.stderr)).toEqual([
      '2026-02-17 has 1200 tokens, 6 times 200',
      '2026-02-17 has 12 requests, 6 times 2',
      '2026-02-24 has 2 tokens, 0.01 times 200',
    ])
    deliver('2026-02-24', 100)
    deliver('2026-02-17', 90)
    expect((await run()).code).toBe(0)
  })

  it('is compared with the median of the eight weeks before, even or odd in number', async () => {
    const monday = addDays(LAST, -1)
    for (const [index, tokens] of [10, 80, 20, 70, 30, 60, 50, 40, 1].entries()) {
      deliverWeeks(LAST, tokens, [index + 1])
      // One Monday is missing.
      if (index !== 1) deliverWeeks(monday, tokens, [index + 1])
    }
    for (const day of [monday, LAST]) deliver(day, 9)
    await expectBlocked(
      '18 tokens, 0.225 times 80, the median of the 7 Mondays before it',
      '18 tokens, 0.2 times 90, the median of the 8 Tuesdays before it',
    )
  })

  it('of the first run is compared for its last day only, and noted without blocking', async () => {
    const raw = join(dataDir, 'raw')
    dataDir = makeFolder()
    copyRaw(dataDir, raw)
    deliverWeeks(addDays(LAST, -1), 100)
    deliver(addDays(LAST, -1), 1)
    deliver(LAST, 1)
    const ended = await run('--json')
    expect(ended.stderr.split('\n').filter((line) => line.includes('volume: '))).toEqual([
      `Let through since nothing is published yet, volume: ${LAST} has 2 tokens, 0.01 times 200, the median of the ` +
        '8 Tuesdays before it; allowed are 0.5 to 5 times',
    ])
    expect(ended.stderr).toContain('findings let through: 1')
    const facts = { stage: 'gate', compared_with: null, accepted: [], as_first: ['volume'] }
    expect(JSON.parse(ended.stdout)).toMatchObject({
      outcome: 'published',
      stages: expect.arrayContaining([expect.objectContaining(facts)]),
    })

    // Later runs block, since a snapshot could stay.
    deliver(LAST, 2)
    await expect(runAt(dataDir, '2026-03-04T03:00:00Z')).rejects.toThrow(
      /^Blocked before publishing; 20260304T020000Z/,
    )
  })
})

describe('rows', () => {
  it('blocks if published days lost their usage, also if the data ends before the last of them', async () => {
    for (const day of ['2026-02-10', '2026-02-24'])
      rmSync(join(dataDir, `raw/usage/date=${day}`), { recursive: true })
    const lost = (day: string) => `rows: the published day ${day} has no usage any more`
    await expectBlocked(lost('2026-02-10'), lost('2026-02-24'))
    await publish(dataDir, '2026-03-04T02:00:00Z', '--accept', 'rows')
    const coverage = await queryCurrent(dataDir, "SELECT status FROM coverage WHERE day = '2026-02-10'")
    expect(coverage).toEqual([{ status: 'missing' }])
  })

  it('blocks if more than the allowed share of the published rows is gone', async () => {
    deliver('2026-02-24', 200, [1])
    deliver('2026-02-17', 200, [1])
    await expectBlocked('2 of 16 published rows (a day of an app) are gone, 12.5 %; allowed are 10 %')
    vi.stubEnv('GATE_ROWS_LOST', '12.5')
    expect((await run()).code).toBe(0)
  })

  it('lets an operator take an alias away, but blocks if the row that made it is lost', async () => {
    for (const day of ['2026-02-25', '2026-02-26', '2026-02-27', '2026-02-28']) deliver(day, 100, [3])
    register(dataDir, ['3,Three,public,,,2025-01-01'], 'three.csv')
    register(dataDir, ['3,Three,public,,1,2026-03-03'], 'three-later.csv')
    await publish(dataDir, '2026-03-03T12:00:00Z')
    rmSync(join(dataDir, 'raw/apps/three-later.csv'))
    expect(await run()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('4 of 20 published rows (a day of an app) are gone, 20 %'),
    })
    register(dataDir, ['3,Three,public,,,2026-03-03'], 'three-later.csv')
    expect((await run()).code).toBe(0)
  })
})

it('days before the published history, a correction that loses few rows, and an app that is hidden or becomes an alias pass', async () => {
  for (const week of WEEKS) deliver(addDays(LAST, -7 * (week + 8)), week % 2 === 0 ? 1 : 1000)
  deliver('2026-02-24', 200, [1])
  await publish(dataDir, '2026-03-04T02:00:00Z')
  register(dataDir, ['2,Two,public,,1,2026-03-01'], 'later.csv')
  await publish(dataDir, '2026-03-05T02:00:00Z')
  register(dataDir, ['2,Two,hidden,,,2026-03-02'], 'later.csv')
  await publish(dataDir, '2026-03-06T02:00:00Z')
  expect(currentSnapshot(dataDir)).toContain('20260306T020000Z')
})

it('several findings are all reported, and each must be accepted: a volume, and an app that left the registry', async () => {
  rmSync(join(dataDir, 'raw/apps/two.csv'))
  deliver(LAST, 1)
  await expectBlocked(
    'volume: ',
    'apps: the published app 2 "Two" has no row left in the registry',
    'run --accept volume,apps',
  )
  expect((await run('--accept', 'apps')).stderr).toContain('run --accept volume,apps')
  const both = await publish(dataDir, '2026-03-04T02:00:00Z', '--accept', 'apps', '--accept', 'volume')
  expect(both.stderr).toContain('Let through by --accept, apps: ')
  // Published with the snapshot, so it must not name the removed app.
  expect(readFileSync(join(currentSnapshot(dataDir), 'report.json'), 'utf8')).not.toContain('Two')
})
