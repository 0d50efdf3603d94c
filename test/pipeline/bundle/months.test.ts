/**
 * CONTRACT 8: A month of app_daily is one file; an unchanged month is the previous snapshot's file. Whatever happens between two nights,
 * the files equal those of a first run over the same input.
 */
import fs, { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Report } from '../../../pipeline/run-end.ts'
import { fact } from '../../support/pipeline/in-process.ts'
import { Months, monthsOf } from '../../support/pipeline/months.ts'
import { TemporaryFolders, currentSnapshot, queryCurrent } from '../../support/pipeline/nightly.ts'

const MONTHS = ['2025-12', '2026-01', '2026-02', '2026-03']
const RECENT = 'app_daily/month=2026-02.parquet'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** State after the first night. */
const template = folders.make()

let dataDir = ''
let months: Months

beforeAll(async () => {
  months = new Months(folders, template)
  dataDir = template
  months.fill()
  expect(reused(await months.run())).toEqual([])
})

beforeEach(() => {
  dataDir = folders.copy(template)
  months = new Months(folders, dataDir)
})

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
  await months.expectAsAnew()
})

it('months of models are shared too', async () => {
  months.deliver('2026-03-05', 'late.csv', 50)
  await months.run()
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
      months.deliver('2025-11-02')
      months.deliver('2026-03-05', 'late.csv', 50)
      // The same rows in a new file.
      months.deliver('2026-02-03')
      months.decide('8,Eight,public,game,,2026-03-06')
      months.decide('1,Renamed,public,roleplay,,2026-03-06')
      months.decide('5,Unused,hidden,,,2026-03-06')
      months.decide('9,,public,,1,2026-03-06')
    },
    ALL_BUT_NEWEST,
  ],
  [
    'of days: a late file, and usage in a month without any',
    () => {
      months.deliver('2025-12-30', 'late.csv', 50)
      months.deliver('2026-01-15')
    },
    ['2026-02'],
  ],
  ['of figures', () => months.deliver('2026-02-03', 'rows.csv', 50), WITHOUT_FEBRUARY],
  ['by an app with usage that is hidden', () => months.decide('7,Seven,hidden,,,2026-03-06'), ['2026-01']],
  [
    'by apps with usage that become public and are registered',
    () => {
      months.decide('6,Hidden,public,,,2026-03-06')
      months.decide('4,Four,public,,,2026-03-06')
    },
    ['2026-01'],
  ],
  ['by an app with usage that becomes an alias', () => months.decide('7,,public,,1,2026-03-06'), ['2026-01']],
  [
    'of the type of totals: all usage together passes what BIGINT holds',
    () => months.deliver('2026-03-05', 'large.csv', 4e17),
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
    expect(reused(await months.nextNight())).toEqual(expected)
    await months.expectSameRows()
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
    const report = await months.nextNight()
    expect(codes).toEqual([])
    expect(fact(report, 'bundle', 'months_reused')).toBe(ALL_BUT_NEWEST.length)
  } finally {
    Object.assign(fs, { linkSync })
    syncBuiltinESMExports()
  }
  expect(statSync(join(currentSnapshot(dataDir), RECENT)).nlink).toBe(1)
  await months.expectSameRows()
})

it('a hidden app is in no byte of later snapshots', async () => {
  months.decide('7,Qwzxv-seven,public,,,2026-03-06')
  await months.nextNight()
  months.decide('7,Qwzxv-seven,hidden,,,2026-03-07')
  await months.nextNight()
  const folder = currentSnapshot(dataDir)
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name)
    if (statSync(path).isFile()) expect(readFileSync(path).includes('Qwzxv-seven'), name).toBe(false)
  }
})
