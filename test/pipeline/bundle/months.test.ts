/**
 * A month of app_daily is one file, and a month whose rows did not change is the file of the snapshot before. Whatever
 * happens between two nights, the files are those that an empty folder would give.
 */
import fs, { appendFileSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { GATES } from '../../../pipeline/run-options.ts'
import type { Report } from '../../../pipeline/run.ts'
import { fact, runAt } from '../../support/in-process.ts'
import { TemporaryFolders, copyRaw, currentSnapshot, queryCurrent, writeRaw } from '../../support/nightly.ts'
import { randomFrom, seedFrom } from '../../support/random.ts'

const DAYS = ['2025-12-30', '2026-02-03', '2026-02-28', '2026-03-05']
const FIRST_NIGHT = '2026-03-06'
const MONTHS = ['2025-12', '2026-01', '2026-02', '2026-03']
const RECENT = 'app_daily/month=2026-02.parquet'

/** App 4 has usage and is not registered, 5 is registered and has no usage. */
const REGISTRY = `app_id,app_name,visibility,subcategories,alias_of,updated_at
1,One,public,cli-agent,,2025-01-01
2,Two,public,game,,2025-01-01
3,Of two,public,,2,2025-01-01
5,Unused,public,,,2025-01-01
6,Hidden,hidden,,,2025-01-01
7,Seven,public,,,2025-01-01
`

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** What the first night leaves behind. */
const template = folders.make()

let dataDir = ''
/** The day that has just begun; the run's data reaches to the one before. */
let today = ''

beforeAll(async () => {
  dataDir = template
  today = FIRST_NIGHT
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  for (const day of DAYS) deliver(day)
  expect(reused(await run())).toEqual([])
})

beforeEach(() => {
  dataDir = folders.copy(template)
  today = FIRST_NIGHT
})

function deliver(day: string, file = 'rows.csv', tokens = 100): void {
  const rows = [1, 2, 3, 4, 6, 7].map((app) => `${day},${app},${tokens * app + Number(day.slice(-2))},${app}`)
  writeRaw(
    dataDir,
    `usage/date=${day}/${file}`,
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
}

function decide(row: string): void {
  appendFileSync(join(dataDir, 'raw/apps/registry.csv'), `${row}\n`)
}

function run(): Promise<Report> {
  // No gate is to be in the way here: what they let through is not the question.
  return runAt(dataDir, `${today}T02:00:00Z`, { accepted: [...GATES] })
}

/** The night after a day with usage. */
function nextNight(): Promise<Report> {
  deliver(today)
  today = addDays(today, 1)
  return run()
}

/** The months of the new snapshot that are files of the one before, as the disk shows and the report says. */
function reused(report: Report): string[] {
  const snapshots = readdirSync(join(dataDir, 'snapshots')).filter((name) => name !== 'records')
  const [newest, before] = snapshots.toSorted().toReversed()
  const inode = (id: string | undefined, month: string) =>
    statSync(join(dataDir, 'snapshots', String(id), `app_daily/month=${month}.parquet`), {
      throwIfNoEntry: false,
    })?.ino
  const months = monthsOf(dataDir).filter((month) => inode(newest, month) === inode(before, month))
  expect([fact(report, 'bundle', 'months_reused'), fact(report, 'bundle', 'months')]).toEqual([
    months.length,
    monthsOf(dataDir).length,
  ])
  return months
}

function monthsOf(folder: string): string[] {
  return readdirSync(join(currentSnapshot(folder), 'app_daily'))
    .toSorted()
    .map((name) => /^month=(.*)\.parquet$/.exec(name)?.[1] ?? name)
}

/** The same input over an empty folder at the same time gives the same files, with the rows of the table. */
async function expectAsAnew(): Promise<void> {
  const other = folders.make()
  copyRaw(other, join(dataDir, 'raw'))
  await runAt(other, `${today}T02:00:00Z`)
  expect(monthsOf(dataDir)).toEqual(monthsOf(other))
  for (const month of monthsOf(dataDir)) {
    const name = `app_daily/month=${month}.parquet`
    const [published, anew] = [dataDir, other].map((each) => readFileSync(join(currentSnapshot(each), name)))
    expect(published?.equals(anew ?? Buffer.of()), name).toBe(true)
  }
  await expectSameRows()
}

async function expectSameRows(): Promise<void> {
  const files = `FROM read_parquet('${join(currentSnapshot(dataDir), 'app_daily/*.parquet')}')`
  expect(await queryCurrent(dataDir, files)).toEqual(await queryCurrent(dataDir, 'FROM app_daily'))
}

it('each month from the first day of the data to the last has a file, also one without usage', async () => {
  expect(monthsOf(dataDir)).toEqual(MONTHS)
  const empty = `FROM '${join(currentSnapshot(dataDir), 'app_daily/month=2026-01.parquet')}'`
  expect(await queryCurrent(dataDir, empty)).toEqual([])
  await expectAsAnew()
})

const ALL_BUT_NEWEST = MONTHS.slice(0, -1)
const WITHOUT_FEBRUARY = ['2025-12', '2026-01']

/** What happens between the nights, and which months the second one shares with the first. */
const CHANGES: readonly (readonly [string, () => void, readonly string[]])[] = [
  ['nothing but a new day', () => undefined, ALL_BUT_NEWEST],
  ['a late file for the newest month', () => deliver('2026-03-05', 'late.csv'), ALL_BUT_NEWEST],
  ['a new app', () => decide('8,Eight,public,game,,2026-03-06'), ALL_BUT_NEWEST],
  ['another name and other tags', () => decide('1,Renamed,public,roleplay,,2026-03-06'), ALL_BUT_NEWEST],
  ['an app without usage is hidden', () => decide('5,Unused,hidden,,,2026-03-06'), ALL_BUT_NEWEST],
  ['an app without usage becomes an alias', () => decide('5,,public,,1,2026-03-06'), ALL_BUT_NEWEST],
  ['a file is delivered again', () => deliver('2026-02-03'), ALL_BUT_NEWEST],
  ['a late file', () => deliver('2026-02-03', 'late.csv'), WITHOUT_FEBRUARY],
  ['other figures', () => deliver('2026-02-03', 'rows.csv', 50), WITHOUT_FEBRUARY],
  ['a day is gone', () => removeDay('2026-02-03'), WITHOUT_FEBRUARY],
  ['a day in a month without usage', () => deliver('2026-01-15'), ['2025-12', '2026-02']],
  ['a day before all others', () => deliver('2025-11-02'), ALL_BUT_NEWEST],
  ['an app with usage is hidden', () => decide('7,Seven,hidden,,,2026-03-06'), ['2026-01']],
  ['a hidden app becomes public', () => decide('6,Hidden,public,,,2026-03-06'), ['2026-01']],
  ['an app with usage is registered', () => decide('4,Four,public,,,2026-03-06'), ['2026-01']],
  ['an app with usage becomes an alias', () => decide('7,,public,,1,2026-03-06'), ['2026-01']],
  [
    'a day passes what BIGINT holds, so the columns change',
    () => deliver('2026-03-05', 'wide.csv', 3e18),
    [],
  ],
  [
    'a shared file has a flipped bit',
    () => damage((bytes) => bytes.writeUInt8(bytes.readUInt8(99) ^ 1, 99)),
    WITHOUT_FEBRUARY,
  ],
  ['a shared file is gone', () => rmSync(join(currentSnapshot(dataDir), RECENT)), WITHOUT_FEBRUARY],
  [
    'the descriptor is damaged',
    () => writeFileSync(join(currentSnapshot(dataDir), 'datapackage.json'), '{'),
    [],
  ],
]

function removeDay(day: string): void {
  rmSync(join(dataDir, `raw/usage/date=${day}`), { recursive: true })
}

function damage(change: (bytes: Buffer) => unknown): void {
  const path = join(currentSnapshot(dataDir), RECENT)
  const bytes = readFileSync(path)
  change(bytes)
  writeFileSync(path, bytes)
}

it.each(CHANGES)('%s: the months with other rows are written', async (_, change, expected) => {
  change()
  expect(reused(await nextNight())).toEqual(expected)
  await expectSameRows()
})

it.each(['EXDEV', 'EPERM', 'EMLINK'])('where a link fails with %s, the file is copied', async (code) => {
  const { linkSync } = fs
  Object.assign(fs, {
    linkSync() {
      throw Object.assign(new Error(code), { code })
    },
  })
  syncBuiltinESMExports()
  try {
    const report = await nextNight()
    expect(fact(report, 'bundle', 'months_reused')).toBe(ALL_BUT_NEWEST.length)
  } finally {
    Object.assign(fs, { linkSync })
    syncBuiltinESMExports()
  }
  expect(statSync(join(currentSnapshot(dataDir), RECENT)).nlink).toBe(1)
  await expectSameRows()
})

it('what is hidden is in no byte of what is published from then on', async () => {
  decide('7,Qwzxv-seven,public,,,2026-03-06')
  await nextNight()
  decide('7,Qwzxv-seven,hidden,,,2026-03-07')
  await nextNight()
  const folder = currentSnapshot(dataDir)
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name)
    if (statSync(path).isFile()) expect(readFileSync(path).includes('Qwzxv-seven'), name).toBe(false)
  }
})

it('whatever comes in whatever order, each night publishes what it would anew', async () => {
  const random = randomFrom(seedFrom('MONTHS_SEED'))
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]
  const changes: readonly (() => unknown)[] = [
    () => deliver(pick(DAYS) ?? '', 'late.csv', 1 + Math.floor(random() * 100)),
    () => rmSync(join(dataDir, `raw/usage/date=${pick(DAYS)}`), { recursive: true, force: true }),
    () => decide(`${pick([1, 3, 4, 6, 7])},Some,${pick(['public', 'hidden'])},game,,${today}`),
    () => decide(`${pick([3, 4, 7])},Some,public,,${pick([1, 2])},${today}`),
    () => (today = addDays(today, 20)),
  ]
  for (let number = 0; number < 4; number += 1) {
    pick(changes)?.()
    await nextNight()
    await expectAsAnew()
  }
})
