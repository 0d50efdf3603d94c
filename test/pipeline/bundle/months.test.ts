/**
 * CONTRACT 8: a month of app_daily is one file; an unchanged month is the previous snapshot's file. The files equal those of
 * a first run over the same input; test/system/pipeline/oracle.test.ts proves that over drawn nights.
 */
import fs, { appendFileSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import type { Report } from '../../../pipeline/run-end.ts'
import { GATES } from '../../../pipeline/run-options.ts'
import { fact, runAt } from '../../support/pipeline/in-process.ts'
import {
  TemporaryFolders,
  copyRaw,
  currentSnapshot,
  deliver,
  queryCurrent,
  register,
} from '../../support/pipeline/nightly.ts'

const MONTHS = ['2025-12', '2026-01', '2026-02', '2026-03']
const RECENT = 'app_daily/month=2026-02.parquet'

/** App 4 has usage but is not registered, 5 and 9 are registered without usage. */
const REGISTRY = [
  '1,One,public,cli-agent,,2025-01-01',
  '2,Two,public,game,,2025-01-01',
  '3,Of two,public,,2,2025-01-01',
  '5,Unused,public,,,2025-01-01',
  '6,Hidden,hidden,,,2025-01-01',
  '7,Seven,public,,,2025-01-01',
  '9,Nine,public,,,2025-01-01',
]

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** State after the first night. */
const template = folders.make()

let dataDir = template
/** The present day; the run's data ends on the day before. */
let today = ''

beforeAll(async () => {
  today = '2026-03-06'
  register(dataDir, REGISTRY)
  for (const day of ['2025-12-30', '2026-02-03', '2026-02-28', '2026-03-05']) use(day)
  expect(reused(await run())).toEqual([])
})

beforeEach(() => {
  dataDir = folders.copy(template)
  today = '2026-03-06'
})

/** Writes a file of usage of a day. */
function use(day: string, file = 'rows.csv', tokens = 100): void {
  const rows = [1, 2, 3, 4, 6, 7].map((app) => `${app},${tokens * app + Number(day.slice(-2))},${app}`)
  deliver(dataDir, day, rows, file)
}

/** Appends a row to the registry. */
function decide(row: string): void {
  appendFileSync(join(dataDir, 'raw/apps/registry.csv'), `\n${row}`)
}

function run(): Promise<Report> {
  // Accepts all gates, which are not tested here.
  return runAt(dataDir, `${today}T02:00:00Z`, { accepted: [...GATES] })
}

/** Runs the night after a day with usage. */
function nextNight(): Promise<Report> {
  use(today)
  today = addDays(today, 1)
  return run()
}

function monthsOf(folder: string): string[] {
  const names = readdirSync(join(currentSnapshot(folder), 'app_daily')).toSorted()
  return names.flatMap((name) => /^month=(.*)\.parquet$/.exec(name)?.[1] ?? [])
}

/** The month files hold the rows of their tables. */
async function expectSameRows(): Promise<void> {
  for (const table of ['app_daily', 'model_daily']) {
    const rows = await queryCurrent(dataDir, `FROM ${table} ORDER BY ALL`)
    const files = `'${join(currentSnapshot(dataDir), table, '*.parquet')}'`
    expect(await queryCurrent(dataDir, `FROM ${files} ORDER BY ALL`)).toEqual(rows)
  }
}

function inode(id: string | undefined, name: string): number | undefined {
  return statSync(join(dataDir, 'snapshots', String(id), name), { throwIfNoEntry: false })?.ino
}

/** The months that the new snapshot shares with the previous one, by the disk and by the report. */
function reused(report: Report): string[] {
  const snapshots = readdirSync(join(dataDir, 'snapshots')).filter((name) => name !== 'records')
  const [newest, before] = snapshots.toSorted().toReversed()
  const shared = monthsOf(dataDir).filter((month) => {
    const name = `app_daily/month=${month}.parquet`
    return inode(newest, name) === inode(before, name)
  })
  expect([fact(report, 'bundle', 'months_reused'), fact(report, 'bundle', 'months')]).toEqual([
    shared.length,
    monthsOf(dataDir).length,
  ])
  return shared
}

it('each month from the first day of the data to the last has a file, also a month without usage', async () => {
  expect(monthsOf(dataDir)).toEqual(MONTHS)
  const empty = `FROM '${join(currentSnapshot(dataDir), 'app_daily/month=2026-01.parquet')}'`
  expect(await queryCurrent(dataDir, empty)).toEqual([])
  const other = folders.make()
  copyRaw(other, join(dataDir, 'raw'))
  await runAt(other, `${today}T02:00:00Z`)
  for (const name of MONTHS.flatMap((month) => [`app_daily/month=${month}`, `model_daily/month=${month}`])) {
    const [published, anew] = [dataDir, other].map((each) =>
      readFileSync(join(currentSnapshot(each), `${name}.parquet`)),
    )
    expect(published?.equals(anew ?? Buffer.of()), name).toBe(true)
  }
  await expectSameRows()
})

it('months of models are shared too', async () => {
  use('2026-03-05', 'late.csv', 50)
  await run()
  const [newest, before] = readdirSync(join(dataDir, 'snapshots'))
    .filter((name) => name !== 'records')
    .toSorted()
    .toReversed()
  const [february, march] = ['model_daily/month=2026-02.parquet', 'model_daily/month=2026-03.parquet']
  expect(inode(newest, february)).toBe(inode(before, february))
  expect(inode(newest, march)).not.toBe(inode(before, march))
})

const ALL_BUT_NEWEST = MONTHS.slice(0, -1)
const WITHOUT_FEBRUARY = ['2025-12', '2026-01']

/** Changes between the nights, and the months that the second one shares with the first. */
const CHANGES: readonly (readonly [string, () => void, readonly string[]])[] = [
  [
    'of the newest month, before all other days, of names and tags, and of apps without usage',
    () => {
      use('2025-11-02')
      use('2026-03-05', 'late.csv', 50)
      // The same rows in a new file.
      use('2026-02-03')
      decide('8,Eight,public,game,,2026-03-06')
      decide('1,Renamed,public,roleplay,,2026-03-06')
      decide('5,Unused,hidden,,,2026-03-06')
      decide('9,,public,,1,2026-03-06')
    },
    ALL_BUT_NEWEST,
  ],
  [
    'of days: a late file, and usage in a month without any',
    () => {
      use('2025-12-30', 'late.csv', 50)
      use('2026-01-15')
    },
    ['2026-02'],
  ],
  ['of figures', () => use('2026-02-03', 'rows.csv', 50), WITHOUT_FEBRUARY],
  ['by an app with usage that is hidden', () => decide('7,Seven,hidden,,,2026-03-06'), ['2026-01']],
  [
    'by apps with usage that become public and are registered',
    () => {
      decide('6,Hidden,public,,,2026-03-06')
      decide('4,Four,public,,,2026-03-06')
    },
    ['2026-01'],
  ],
  ['by an app with usage that becomes an alias', () => decide('7,,public,,1,2026-03-06'), ['2026-01']],
  [
    'of the type of totals: all usage together passes what BIGINT holds',
    () => use('2026-03-05', 'large.csv', 4e17),
    ALL_BUT_NEWEST,
  ],
  [
    'of a shared file: a bit is flipped',
    () => damage((bytes) => bytes.writeUInt8(bytes.readUInt8(99) ^ 1, 99)),
    WITHOUT_FEBRUARY,
  ],
  ['of a shared file: it is gone', () => rmSync(join(currentSnapshot(dataDir), RECENT)), WITHOUT_FEBRUARY],
  [
    'of the record: it is damaged',
    () => {
      const folder = currentSnapshot(dataDir)
      writeFileSync(join(folder, 'record.json'), '{')
      writeFileSync(join(folder, '../records', `${basename(folder)}.json`), '{')
    },
    [],
  ],
]

function damage(change: (bytes: Buffer) => unknown): void {
  const path = join(currentSnapshot(dataDir), RECENT)
  const bytes = readFileSync(path)
  change(bytes)
  writeFileSync(path, bytes)
}

it.each(CHANGES)(
  'after a change %s, only months with other rows are written',
  async (_, change, expected) => {
    change()
    expect(reused(await nextNight())).toEqual(expected)
    await expectSameRows()
  },
)

it('if a link fails (other disk, missing right, too many links), the file is copied', async () => {
  const { linkSync } = fs
  const codes = ['EXDEV', 'EPERM', 'EMLINK']
  Object.assign(fs, {
    linkSync() {
      const code = codes.shift()
      throw Object.assign(new Error(code), { code })
    },
  })
  syncBuiltinESMExports()
  try {
    const report = await nextNight()
    expect(codes).toEqual([])
    expect(fact(report, 'bundle', 'months_reused')).toBe(ALL_BUT_NEWEST.length)
  } finally {
    Object.assign(fs, { linkSync })
    syncBuiltinESMExports()
  }
  expect(statSync(join(currentSnapshot(dataDir), RECENT)).nlink).toBe(1)
  await expectSameRows()
})

it('a hidden app is in no byte of later snapshots', async () => {
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
