/**
 * CONTRACT 8: what a change between two nights does to the published history: each changed day has its cause, and only
 * months with other rows get new files. They equal those of a first run: test/system/pipeline/oracle.test.ts.
 */
import fs, { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import type { Report } from '../../../pipeline/run-end.ts'
import { GATES } from '../../../pipeline/run-options.ts'
import { copyFolder, makeFolder } from '../../support/folders.ts'
import { fact, runAt } from '../../support/pipeline/in-process.ts'
import {
  currentSnapshot,
  deliver,
  queryCurrent,
  register,
  withDatabase,
} from '../../support/pipeline/nightly.ts'
import { appDaily, readDataset } from '../../support/pipeline/oracle.ts'

/** App 4 has usage but is not registered, 5 and 9 are registered without usage. */
const REGISTRY = [
  '1,One,public,cli-agent,,2025-01-01',
  '2,Two,public,game,,2025-01-01',
  '3,Of two,public,,2,2025-01-01',
  '5,Unused,public,,,2025-01-01',
  '6,Hidden,hidden,,,2025-01-01',
  '9,Nine,public,,,2025-01-01',
]
const SEVEN = '7,Seven,public,,,2025-01-01'
/** Days with usage after the first night. */
const [FIRST, OF_SIX, SECOND, LAST] = ['2025-12-30', '2026-02-03', '2026-02-28', '2026-03-05']

const MONTHS = ['2025-12', '2026-01', '2026-02', '2026-03']
const ALL_BUT_NEWEST = MONTHS.slice(0, -1)
const FEBRUARY = 'app_daily/month=2026-02.parquet'

/** State after the first night. */
const template = makeFolder()
let dataDir = template

beforeAll(async () => {
  register(dataDir, [...REGISTRY, SEVEN])
  for (const day of [FIRST, OF_SIX, SECOND, LAST]) use(day)
  await runAt(dataDir, '2026-03-06T02:00:00Z')
})

beforeEach(() => {
  dataDir = copyFolder(template)
})

/** Writes a file of usage of a day; app 7 has none on one day. */
function use(day: string, file = 'rows.csv', tokens = 100): void {
  const apps = day === OF_SIX ? [1, 2, 3, 4, 6] : [1, 2, 3, 4, 6, 7]
  const rows = apps.map((app) => `${app},${tokens * app + Number(day.slice(-2))},${app}`)
  deliver(dataDir, day, rows, file)
}

const decide = (...rows: readonly string[]) => register(dataDir, rows, 'later.csv')

/** Runs the night after another day of usage; accepts all gates, which are not tested here. */
function nextNight(): Promise<Report> {
  use('2026-03-06')
  return runAt(dataDir, '2026-03-07T02:00:00Z', { accepted: [...GATES] })
}

/** The days that the newest snapshot restated, with cause and number of apps. */
async function causes(): Promise<string[]> {
  const newest = 'FROM restatements WHERE as_of = (SELECT as_of FROM meta)'
  const rows = await queryCurrent(
    dataDir,
    `SELECT concat_ws(' ', day, cause, apps_changed) AS text ${newest} ORDER BY ALL`,
  )
  return rows.map(({ text }) => String(text))
}

/** The months of a table whose file the newest snapshot shares with the one before. */
function shared(table: string): string[] {
  const snapshots = readdirSync(join(dataDir, 'snapshots')).filter((name) => name !== 'records')
  const [before = '', newest = ''] = snapshots.toSorted()
  const inode = (id: string, month: string) =>
    statSync(join(dataDir, 'snapshots', id, table, `month=${month}.parquet`), { throwIfNoEntry: false })?.ino
  return MONTHS.filter((month) => inode(newest, month) === inode(before, month))
}

/** The files of months hold the rows of their tables, each row in its month. */
async function expectSameRows(): Promise<void> {
  for (const table of ['app_daily', 'model_daily']) {
    const files = `read_parquet('${join(currentSnapshot(dataDir), table, '*.parquet')}', filename = 'file')`
    const rows = await queryCurrent(dataDir, `FROM ${table} ORDER BY ALL`)
    expect(await queryCurrent(dataDir, `SELECT * EXCLUDE (file) FROM ${files} ORDER BY ALL`)).toEqual(rows)
    const misplaced = `FROM ${files} WHERE NOT contains(file, strftime(day, 'month=%Y-%m'))`
    expect(await queryCurrent(dataDir, misplaced)).toEqual([])
  }
}

it('each month from the first day of the data to the last has a file, also a month without usage', async () => {
  for (const table of ['app_daily', 'model_daily'])
    expect(readdirSync(join(currentSnapshot(dataDir), table)).toSorted()).toEqual(
      MONTHS.map((month) => `month=${month}.parquet`),
    )
  await expectSameRows()
})

/** Days that did not change are taken over from the snapshot before: the tables are those of the whole input all the same. */
async function expectRowsOfInput(): Promise<void> {
  const expected = appDaily(readDataset(join(dataDir, 'raw'), '2026-03-07T02:00:00Z'))
  expect(await queryCurrent(dataDir, 'FROM app_daily')).toEqual(expected)
  // The usage names no model.
  const models =
    "SELECT day, 'other' AS model_permaslug, sum(COLUMNS(* EXCLUDE (day, app_id)))::BIGINT FROM app_daily"
  const byDay = await queryCurrent(dataDir, `${models} GROUP BY day ORDER BY day`)
  expect(await queryCurrent(dataDir, 'FROM model_daily')).toEqual(byDay)
}

const onEach = (days: readonly string[], ...found: readonly string[]) =>
  days.flatMap((day) => found.map((each) => `${day} ${each}`))

type Change = {
  readonly what: string
  readonly change: () => void
  /** The days that it restates. */
  readonly causes: readonly string[]
  /** The months whose files stay. */
  readonly kept: readonly string[]
  /** Those of model_daily, if others. */
  readonly models?: readonly string[]
}

const CHANGES: readonly Change[] = [
  {
    what: 'nothing but names, tags, apps without usage, files and a day before all others',
    change: () => {
      use('2025-11-02')
      // The same rows in a new file.
      use(OF_SIX)
      decide(
        '8,Eight,public,game,,2026-03-06',
        '1,Renamed,public,roleplay,,2026-03-06',
        '5,Unused,hidden,,,2026-03-06',
        '9,,public,,1,2026-03-06',
      )
    },
    causes: ['2025-11-02 figures 3'],
    kept: ALL_BUT_NEWEST,
  },
  {
    what: 'figures of the newest month',
    change: () => use(LAST, 'late.csv', 50),
    causes: [`${LAST} figures 3`],
    kept: ALL_BUT_NEWEST,
  },
  {
    what: 'days: a late file, and usage in a month without any',
    change: () => {
      use(FIRST, 'late.csv', 50)
      use('2026-01-15')
    },
    causes: [`${FIRST} figures 3`, '2026-01-15 figures 3'],
    kept: ['2026-02'],
  },
  {
    what: 'figures, and an app that is hidden on the same day',
    change: () => {
      use(SECOND, 'rows.csv', 50)
      decide('7,Seven,hidden,,,2026-03-06')
    },
    causes: [
      ...onEach([FIRST], 'visibility 1'),
      ...onEach([SECOND], 'figures 3', 'visibility 1'),
      ...onEach([LAST], 'visibility 1'),
    ],
    kept: ['2026-01'],
  },
  {
    what: 'an app that leaves the registry',
    change: () => register(dataDir, REGISTRY),
    causes: onEach([FIRST, SECOND, LAST], 'removed 1'),
    kept: ['2026-01'],
  },
  {
    what: 'apps that become public and are registered',
    change: () => decide('6,Hidden,public,,,2026-03-06', '4,Four,public,,,2026-03-06'),
    causes: onEach([FIRST, OF_SIX, SECOND, LAST], 'added 1', 'visibility 1'),
    kept: ['2026-01'],
  },
  {
    what: 'an app that becomes an alias, and an alias that becomes an app of its own',
    change: () => decide('7,,public,,1,2026-03-06', '3,Three,public,,,2026-03-06'),
    causes: [
      ...onEach([FIRST], 'alias 4'),
      ...onEach([OF_SIX], 'alias 2'),
      ...onEach([SECOND, LAST], 'alias 4'),
    ],
    kept: ['2026-01'],
    models: ALL_BUT_NEWEST,
  },
  {
    what: 'the type of totals: all usage together passes what BIGINT holds',
    change: () => use(LAST, 'large.csv', 4e17),
    causes: [`${LAST} figures 3`],
    kept: ALL_BUT_NEWEST,
  },
  {
    what: 'a bit of a shared file',
    change: () => {
      const path = join(currentSnapshot(dataDir), FEBRUARY)
      const bytes = readFileSync(path)
      bytes.writeUInt8(bytes.readUInt8(99) ^ 1, 99)
      writeFileSync(path, bytes)
    },
    causes: [],
    kept: ['2025-12', '2026-01'],
    models: ALL_BUT_NEWEST,
  },
  {
    what: 'a shared file, which is gone',
    change: () => rmSync(join(currentSnapshot(dataDir), FEBRUARY)),
    causes: [],
    kept: ['2025-12', '2026-01'],
    models: ALL_BUT_NEWEST,
  },
  {
    what: 'the record, which is damaged',
    change: () => {
      const folder = currentSnapshot(dataDir)
      writeFileSync(join(folder, 'record.json'), '{')
      writeFileSync(join(folder, '../records', `${basename(folder)}.json`), '{')
    },
    causes: [],
    kept: [],
  },
]

it.each(CHANGES)(
  'after a change of $what, each changed day has its cause, only figures restate it, and only months with other rows are written',
  async ({ change, causes: expected, kept, models = kept }) => {
    change()
    const report = await nextNight()
    expect(await causes()).toEqual(expected)
    const restated = await queryCurrent(dataDir, "FROM coverage WHERE status = 'restated' ORDER BY day")
    const corrected = expected.filter((each) => each.includes('figures')).map((each) => each.split(' ')[0])
    expect(restated.map(({ day }) => day)).toEqual(corrected)

    expect([shared('app_daily'), shared('model_daily')]).toEqual([kept, models])
    expect(fact(report, 'bundle', 'months_reused')).toBe(kept.length)
    await expectSameRows()
    await expectRowsOfInput()
  },
)

it('a snapshot that was changed after it was published lends the next one no rows', async () => {
  const change = 'UPDATE app_daily SET requests = requests + 1; CHECKPOINT'
  const file = join(currentSnapshot(dataDir), SNAPSHOT_FILE)
  await withDatabase((connection) => connection.run(change), file)
  await nextNight()
  await expectRowsOfInput()
})

it('a warehouse without apps of the previous snapshot derives hidden ones from its public ones', async () => {
  const warehouse = await openWarehouse({ dataDir, memory: '1GB' })
  await warehouse.connection.run('DELETE FROM published_apps')
  warehouse.close()
  decide('7,Seven,hidden,,,2026-03-06')
  await nextNight()
  expect(await causes()).toEqual(onEach([FIRST, SECOND, LAST], 'visibility 1'))
})

it('a wrong day of more than 2^63 tokens can be corrected, and the type of totals stays', async () => {
  const types = `SELECT DISTINCT data_type FROM duckdb_columns()
    WHERE column_name IN ('total_tokens', 'tokens_before', 'tokens_after')`
  deliver(dataDir, LAST, ['1,9000000000000000000,9000000000000000000'], 'wrong.csv')
  await nextNight()
  expect(await queryCurrent(dataDir, types)).toEqual([{ data_type: 'DECIMAL(38,0)' }])
  rmSync(join(dataDir, 'raw/usage', `date=${LAST}`, 'wrong.csv'))
  await nextNight()
  expect(await causes()).toEqual([`${LAST} figures 1`])
  expect(await queryCurrent(dataDir, types)).toEqual([{ data_type: 'DECIMAL(38,0)' }])
})

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
  expect(statSync(join(currentSnapshot(dataDir), FEBRUARY)).nlink).toBe(1)
  await expectSameRows()
})
