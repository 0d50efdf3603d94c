/** `npm run nightly -- diff`: the differences between two snapshots. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { noSuchSnapshot } from '../../../pipeline/snapshot/list.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, runCommand, writeRaw } from '../../support/pipeline/nightly.ts'
import { APPS_HEADER, FIRST, SECOND, jsonOf, publishTwice } from '../../support/pipeline/published-twice.ts'
import { publishSnapshot } from '../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()

beforeAll(() => publishTwice(dataDir))
afterAll(() => folders.removeAll())

it('diff shows totals, changed days, new and gone apps, and moved ranks', async () => {
  expect(await jsonOf(dataDir, 'diff', FIRST, SECOND)).toEqual({
    before: FIRST,
    after: SECOND,
    totals: [
      {
        side: 'before',
        data_through: '2026-01-06',
        apps: 2,
        app_days: 4,
        total_requests: '4',
        total_tokens: '90',
      },
      {
        side: 'after',
        data_through: '2026-01-07',
        apps: 2,
        app_days: 6,
        total_requests: '6',
        total_tokens: '600',
      },
    ],
    days: [
      { day: '2026-01-07', tokens_before: '0', tokens_after: '300', apps_changed: 2, causes: [] },
      {
        day: '2026-01-06',
        tokens_before: '60',
        tokens_after: '200',
        apps_changed: 2,
        causes: ['added', 'visibility'],
      },
      {
        day: '2026-01-04',
        tokens_before: '30',
        tokens_after: '100',
        apps_changed: 2,
        causes: ['added', 'visibility'],
      },
    ],
    apps: [
      { change: 'gone', app_id: '2', app_name: 'Two' },
      { change: 'new', app_id: '9', app_name: 'Nine' },
    ],
    ranks: [
      { sort: 'popular', app_id: '2', app_name: 'Two', rank_before: 1, rank_after: null },
      { sort: 'popular', app_id: '9', app_name: 'Nine', rank_before: null, rank_after: 1 },
      { sort: 'trending', app_id: '2', app_name: 'Two', rank_before: 1, rank_after: null },
      { sort: 'trending', app_id: '9', app_name: 'Nine', rank_before: null, rank_after: 1 },
    ],
  })
})

it('diff counts a day that only one side has as 0 on the other', async () => {
  expect(await jsonOf(dataDir, 'diff', SECOND, FIRST)).toMatchObject({
    days: [
      { day: '2026-01-07', tokens_before: '300', tokens_after: '0', apps_changed: 2 },
      { day: '2026-01-06' },
      { day: '2026-01-04' },
    ],
  })
})

it('diff shows a day on which only the requests changed', async () => {
  const recounted = folders.make()
  const deliverWith = (requests: number) =>
    writeRaw(
      recounted,
      'usage/date=2026-01-06/rows.csv',
      `ts,app_id,prompt_tokens,completion_tokens,requests\n2026-01-06,1,10,5,${requests}\n2026-01-06,2,7,8,1\n`,
    )
  writeRaw(recounted, 'apps/registry.csv', `${APPS_HEADER}1,One,public,2025-01-01\n2,Two,public,2025-01-01\n`)
  deliverWith(2)
  await runAt(recounted, '2026-01-07T02:00:00Z')
  deliverWith(3)
  await runAt(recounted, '2026-01-08T02:00:00Z')
  const { stdout } = await runCommand(recounted, 'diff', FIRST, SECOND)
  expect(stdout).toContain('days that changed: 1\n  2026-01-06: 30 -> 30 tokens, 1 app (figures)\n')
})

it('diff shows a day with the same total on which traffic moved between apps', async () => {
  const moved = folders.make()
  const usage = (one: number, two: number) =>
    `ts,app_id,prompt_tokens,completion_tokens\n2026-01-06,1,${one},0\n2026-01-06,2,${two},0\n`
  const header = 'app_id,app_name,visibility,subcategories,updated_at\n'
  writeRaw(moved, 'apps/one.csv', `${header}1,One,public,game,2025-01-01\n`)
  writeRaw(moved, 'apps/two.csv', `${header}2,Two,public,,2025-01-01\n`)
  writeRaw(moved, 'usage/date=2026-01-06/rows.csv', usage(10, 20))
  await runAt(moved, '2026-01-07T02:00:00Z')
  writeRaw(moved, 'usage/date=2026-01-06/rows.csv', usage(12, 18))
  writeRaw(moved, 'apps/one.csv', `${header}1,Uno\u001B[2J,public,game,2025-01-01\n`)
  await runAt(moved, '2026-01-08T02:00:00Z')
  const { stdout } = await runCommand(moved, 'diff', FIRST, SECOND)
  expect(stdout).toContain('days that changed: 1\n  2026-01-06: 30 -> 30 tokens, 2 apps (figures)\n')
  // The app has another rank in the list of its tag, which diff does not compare.
  // A terminal would obey control characters in the name.
  expect(stdout).toContain(
    'apps (change, app_id, app_name): 1\n  renamed  1 Uno\uFFFD[2J\nranks in the 30-day lists',
  )
})

it('diff groups digits, and shows changes in percent', async () => {
  const grown = folders.make()
  const deliverTokens = (tokens: number) =>
    writeRaw(
      grown,
      'usage/date=2026-01-06/rows.csv',
      `ts,app_id,prompt_tokens,completion_tokens\n2026-01-06,1,${tokens},0\n`,
    )
  writeRaw(grown, 'apps/registry.csv', `${APPS_HEADER}1,One,public,2025-01-01\n`)
  deliverTokens(1_000_000)
  await runAt(grown, '2026-01-07T02:00:00Z')
  deliverTokens(1_005_000)
  await runAt(grown, '2026-01-08T02:00:00Z')
  const { stdout } = await runCommand(grown, 'diff', FIRST, SECOND)
  expect(stdout).toContain('1 request, 1,005,000 tokens (+0.50%)\n')
  expect(stdout).toContain('  2026-01-06: 1,000,000 -> 1,005,000 tokens (+0.50%), 1 app (figures)\n')
})

it('diff shows moved ranks, the best ones first', async () => {
  const moved = folders.make()
  const deliverTo = (day: string, ...tokens: readonly number[]) =>
    writeRaw(
      moved,
      `usage/date=${day}/rows.csv`,
      `ts,app_id,prompt_tokens,completion_tokens\n${tokens.map((count, at) => `${day},${at + 1},${count},0\n`).join('')}`,
    )
  const names = [1, 2, 3, 4].map((id) => `${id},App,public,2025-01-01\n`)
  writeRaw(moved, 'apps/registry.csv', `${APPS_HEADER}${names.join('')}`)
  // The fourth app is last in 30 days, but first in the last 7.
  deliverTo('2025-12-20', 100, 100, 100)
  deliverTo('2026-01-06', 40, 30, 20, 50)
  await runAt(moved, '2026-01-07T02:00:00Z')
  deliverTo('2026-01-06', 20, 10, 30, 50)
  await runAt(moved, '2026-01-08T02:00:00Z')
  const lines = ['1 -> 2 1 App', '3 -> 1 3 App', '2 -> 3 2 App']
  const sorts = ['popular ', 'trending']
  const { stdout } = await runCommand(moved, 'diff', FIRST, SECOND)
  expect(
    stdout.split('ranks in the 30-day lists (sort, before -> after, app_id, app_name): 6\n')[1]?.split('\n'),
  ).toEqual([...sorts.flatMap((sort) => lines.map((line) => `  ${sort} ${line}`)), ''])
})

it('diff prints twenty lines of a kind, and the number of further ones', async () => {
  const many = folders.make()
  const apps = Array.from({ length: 21 }, (_, index) => ({ id: index + 1, name: `App ${index + 1}` }))
  const none = { dataThrough: '2026-01-06', apps: [], daily: [] }
  await publishSnapshot(many, { ...none, asOf: new Date('2026-01-07T02:00:00Z') })
  await publishSnapshot(many, { ...none, asOf: new Date('2026-01-08T02:00:00Z'), apps })
  const { stdout } = await runCommand(many, 'diff', FIRST, SECOND)
  const shown = apps.slice(0, 20).map(({ id, name }) => `  new      ${id} ${name}\n`)
  expect(stdout).toBe(
    'before   through 2026-01-06: 0 apps, 0 app-days, 0 requests, 0 tokens\n' +
      'after    through 2026-01-06: 21 apps, 0 app-days, 0 requests, 0 tokens\n' +
      `days that changed: 0\napps (change, app_id, app_name): 21\n${shown.join('')}  and 1 more; --json lists them all\n` +
      'ranks in the 30-day lists (sort, before -> after, app_id, app_name): 0\n',
  )
})

it('diff names an unknown snapshot, and the existing ones', async () => {
  const ended = await runCommand(dataDir, 'diff', FIRST, 'yesterday')
  expect(ended.code).toBe(2)
  expect(ended.stderr).toBe(`There is no snapshot "yesterday". The newest are: ${FIRST}, ${SECOND}\n`)
})

it('the error for an unknown snapshot names at most the newest five', () => {
  const many = folders.make()
  const ids = [1, 2, 3, 4, 5, 6].map((day) => `2026010${day}T020000Z`)
  for (const id of ids) mkdirSync(join(many, 'snapshots', id), { recursive: true })
  expect(noSuchSnapshot(many, 'none').message).toMatch(new RegExp(`: ${ids.slice(1).join(', ')}$`))
})
