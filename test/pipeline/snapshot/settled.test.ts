/**
 * A night takes over what earlier nights wrote of settled months. Whatever happens between the nights, what is published
 * is what would be published without that: the same rows, and as Parquet the same bytes.
 */
import {
  appendFileSync,
  existsSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { quickChecksum } from '../../../pipeline/bundle/checksums.ts'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { GATES } from '../../../pipeline/run-options.ts'
import type { Report } from '../../../pipeline/run.ts'
import { settledThrough } from '../../../pipeline/snapshot/settled.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { fact, queryWarehouse, runAt } from '../../support/in-process.ts'
import {
  TemporaryFolders,
  copyRaw,
  currentSnapshot,
  query,
  queryCurrent,
  runCommand,
  writeRaw,
} from '../../support/nightly.ts'
import { randomFrom, seedFrom } from '../../support/random.ts'

const FIRST_NIGHT = '2026-03-10'

/** What is settled on the first night, and a day on either side. */
const SETTLED_THROUGH = '2026-02-28'
const SETTLED_DAY = '2026-02-21'
const LATE_DAY = '2026-03-05'

/** Days with usage before the first night: the last that is settled, and every fourth, the last of them just before it. */
const HISTORY = [
  SETTLED_THROUGH,
  ...Array.from({ length: 12 }, (_, index) => addDays('2026-01-24', 4 * index)),
].toSorted()

/** App 4 has usage and is not registered, 5 is registered and has no usage. */
const REGISTRY = `app_id,app_name,visibility,subcategories,alias_of,updated_at
1,One,public,cli-agent,,2025-01-01
2,Two,public,game,,2025-01-01
3,Of two,public,,2,2025-01-01
5,Unused,public,,,2025-01-01
6,Hidden,hidden,,,2025-01-01
7,Qwzxv-seven,public,,,2025-01-01
`

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let dataDir = ''
/** The day that has just begun; the run's data reaches to the one before. */
let today = ''

/** What the first night leaves behind. */
const template = folders.make()

beforeAll(async () => {
  dataDir = template
  today = FIRST_NIGHT
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  for (const day of HISTORY) deliver(day)
  expect(takenOver(await run())).toBeNull()
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

function register(row: string): void {
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

function takenOver(report: Report): unknown {
  return fact(report, 'rank', 'taken_over_through')
}

async function changeWarehouse(statement: string): Promise<void> {
  const warehouse = await openWarehouse(dataDir, '1GB')
  await warehouse.connection.run(statement)
  warehouse.close()
}

/** The same input over an empty folder at the same time gives the same files, with the rows of the tables. */
async function expectAsAnew(): Promise<void> {
  const other = folders.make()
  copyRaw(other, join(dataDir, 'raw'))
  expect(takenOver(await runAt(other, `${today}T02:00:00Z`))).toBeNull()
  for (const name of ['app_daily.parquet', 'rankings.parquet', 'apps.parquet']) {
    const [published, anew] = [dataDir, other].map((each) => readFileSync(join(currentSnapshot(each), name)))
    expect(published?.equals(anew ?? Buffer.of()), name).toBe(true)
  }
  for (const sql of ['FROM app_daily', 'FROM apps', "FROM trending('2026-02-20', '2026-03-03')", CATALOGUE]) {
    expect(await queryCurrent(dataDir, sql)).toEqual(await queryCurrent(other, sql))
  }
  const days = join(currentSnapshot(dataDir), 'app_daily.parquet')
  expect(await queryCurrent(dataDir, `FROM read_parquet('${days}')`)).toEqual(
    await queryCurrent(dataDir, 'FROM app_daily'),
  )
}

const CATALOGUE = `
  SELECT schema_name, table_name, sql, comment FROM duckdb_tables()
  UNION ALL SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal
  UNION ALL SELECT schema_name, function_name, macro_definition, comment FROM duckdb_functions() WHERE NOT internal
  ORDER BY ALL`

describe('the last settled day', () => {
  it.each([
    ['2026-03-06', '2026-01-31'],
    ['2026-03-07', '2026-02-28'],
    ['2026-03-31', '2026-02-28'],
    ['2026-04-06', '2026-02-28'],
    ['2026-04-07', '2026-03-31'],
    ['2028-03-07', '2028-02-29'],
    ['2025-01-07', '2024-12-31'],
  ])('where the data reaches to %s is %s', (dataThrough, settled) => {
    expect(settledThrough(dataThrough)).toBe(settled)
  })
})

describe('the night after', () => {
  it('takes over the settled months', async () => {
    expect(takenOver(await nextNight())).toBe(SETTLED_THROUGH)
    await expectAsAnew()
  })

  it('that settles a month keeps it for the nights to come', async () => {
    today = '2026-04-07'
    expect(takenOver(await nextNight())).toBe(SETTLED_THROUGH)
    await expectAsAnew()
    expect(takenOver(await nextNight())).toBe('2026-03-31')
    await expectAsAnew()
  })

  it('leaves nothing behind but what the next one needs', async () => {
    await nextNight()
    const [id, ...others] = readdirSync(join(dataDir, 'kept'))
    expect(others).toEqual([])
    expect(readdirSync(join(dataDir, 'kept', String(id))).toSorted()).toEqual([
      'app-rankings.duckdb',
      'app_daily.parquet',
    ])
  })
})

/** What changes no row of a settled day. */
const HARMLESS: Readonly<Record<string, () => void>> = {
  'a late file for a day that is not settled': () => deliver(LATE_DAY, 'late.csv'),
  'a new app': () => register('8,Eight,public,game,,2026-03-10'),
  'another name': () => register('1,Renamed,public,cli-agent,,2026-03-10'),
  'other tags': () => register('1,One,public,roleplay|game,,2026-03-10'),
  'a public app without usage is hidden': () => register('5,Unused,hidden,,,2026-03-10'),
  'a hidden app becomes private': () => register('6,Hidden,private,,,2026-03-10'),
  'an app without usage becomes an alias': () => register('5,,public,,1,2026-03-10'),
  'a file of a settled day is delivered again': () => deliver(SETTLED_DAY),
}

/** What changes rows of settled days. */
const HARMFUL: Readonly<Record<string, () => void>> = {
  'a late file for a settled day': () => deliver(SETTLED_DAY, 'late.csv'),
  'other figures for a settled day': () => deliver(SETTLED_DAY, 'rows.csv', 50),
  'a settled day is gone': () => removeDay(SETTLED_DAY),
  'a day before all others': () => deliver('2026-01-20'),
  'an app with usage is hidden': () => register('7,Qwzxv-seven,hidden,,,2026-03-10'),
  'a hidden app becomes public': () => register('6,Hidden,public,,,2026-03-10'),
  'an app with usage is registered': () => register('4,Four,public,,,2026-03-10'),
  'an app with usage becomes an alias': () => register('7,,public,,1,2026-03-10'),
  'an alias counts for another app': () => register('3,,public,,1,2026-03-10'),
  'an alias becomes an app of its own': () => register('3,Three,public,,,2026-03-10'),
  'a settled day passes what BIGINT holds': () => deliver(SETTLED_DAY, 'wide.csv', 3e18),
  'a day that is not settled passes what BIGINT holds': () => deliver(LATE_DAY, 'wide.csv', 3e18),
}

function removeDay(day: string): void {
  rmSync(join(dataDir, `raw/usage/date=${day}`), { recursive: true })
}

it.each(Object.entries(HARMLESS))('%s: the settled months are taken over', async (_, change) => {
  change()
  expect(takenOver(await nextNight())).toBe(SETTLED_THROUGH)
  await expectAsAnew()
})

it.each(Object.entries(HARMFUL))('%s: everything is written anew', async (_, change) => {
  change()
  expect(takenOver(await nextNight())).toBeNull()
  await expectAsAnew()
})

it('what was written anew is taken over again', async () => {
  deliver(SETTLED_DAY, 'late.csv')
  await nextNight()
  expect(takenOver(await nextNight())).toBe(SETTLED_THROUGH)
  await expectAsAnew()
})

it('what is hidden is in no byte of what is published or kept from then on', async () => {
  register('7,Qwzxv-seven,hidden,,,2026-03-10')
  await nextNight()
  const kept = readdirSync(join(dataDir, 'kept'), { recursive: true, encoding: 'utf8' }).map((name) =>
    join('kept', name),
  )
  const published = readdirSync(currentSnapshot(dataDir)).map((name) => join('current', name))
  for (const name of [...kept, ...published].filter((each) => each.includes('.'))) {
    expect(readFileSync(join(dataDir, name)).includes('Qwzxv-seven'), name).toBe(false)
  }
})

it('the quick checksum tells every bit of a file, however long', () => {
  const path = join(folders.make(), 'file')
  const bytes = Buffer.alloc(3_000_000)
  const sums = [0, 1_500_000, 2_999_999].map((at) => {
    writeFileSync(path, Buffer.from(bytes).fill(1, at, at + 1))
    return quickChecksum(path)
  })
  expect(new Set(sums).size).toBe(3)
})

describe('what is kept, when', () => {
  const files = ['app-rankings.duckdb', 'app_daily.parquet']

  function path(file: string): string {
    const [id = ''] = readdirSync(join(dataDir, 'kept'))
    return join(dataDir, 'kept', id, file)
  }

  it.each(files)('%s has a flipped bit, is not taken over', async (file) => {
    const bytes = readFileSync(path(file))
    const middle = bytes.length >> 1
    bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle)
    writeFileSync(path(file), bytes)
    expect(takenOver(await nextNight())).toBeNull()
    await expectAsAnew()
  })

  it.each(files)('%s is cut short, is not taken over', async (file) => {
    truncateSync(path(file), 1000)
    expect(takenOver(await nextNight())).toBeNull()
  })

  it.each(files)('%s is gone, is not taken over', async (file) => {
    rmSync(path(file))
    expect(takenOver(await nextNight())).toBeNull()
  })

  it('all of it is gone, is not taken over', async () => {
    rmSync(join(dataDir, 'kept'), { recursive: true })
    expect(takenOver(await nextNight())).toBeNull()
  })

  it('a run failed with it, is not taken over by the next', async () => {
    const stray = (tokens: number) =>
      changeWarehouse(
        `UPDATE usage_daily SET prompt_tokens = prompt_tokens + ${tokens} WHERE day = '${LATE_DAY}'`,
      )
    // Days that are known would not be counted again.
    await run()
    await stray(1)
    await expect(nextNight()).rejects.toThrow('tokens-conserved')
    expect(existsSync(join(dataDir, 'kept'))).toBe(false)
    await stray(-1)
    expect(takenOver(await nextNight())).toBeNull()
    await expectAsAnew()
  })

  it('it is forgotten, is gone from the warehouse as well', async () => {
    const tables = ['kept_files', 'kept_days', 'kept_apps', 'kept_tops', 'kept_tags']
    const counts = `SELECT ${tables.map((name) => `(SELECT count(*) FROM ${name}) AS ${name}`).join(', ')}`
    const before = await queryWarehouse(dataDir, counts)
    await changeWarehouse(
      "INSERT INTO kept_tops VALUES (1, DATE '2026-01-24', DATE '2026-02-24', 'game', [2], [2], 1, 1)",
    )
    rmSync(join(dataDir, 'kept'), { recursive: true })
    await nextNight()
    expect(await queryWarehouse(dataDir, counts)).toEqual(before)
  })

  it('a run was blocked with it, is taken over by the next', async () => {
    const file = join(dataDir, 'raw/apps/registry.csv')
    const registry = readFileSync(file, 'utf8')
    writeFileSync(file, registry.replace('5,Unused,public,,,2025-01-01\n', ''))
    await expect(runAt(dataDir, `${today}T03:00:00Z`)).rejects.toThrow('Unused')
    writeFileSync(file, registry)
    expect(takenOver(await nextNight())).toBe(SETTLED_THROUGH)
    await expectAsAnew()
  })

  it('the data ends before it, is not taken over', async () => {
    for (const day of HISTORY.slice(-4)) removeDay(day)
    today = addDays(today, 1)
    expect(takenOver(await run())).toBeNull()
    await expectAsAnew()
  })
})

describe('restatements', () => {
  function restatedBy(): Promise<unknown> {
    const id = currentSnapshot(dataDir)
    return query(
      join(id, 'app-rankings.duckdb'),
      'SELECT day, previous_as_of, apps_changed FROM restatements WHERE as_of = (SELECT as_of FROM meta) ORDER BY day',
    )
  }

  /** A day that the first night had otherwise. */
  const restated = (day: string) => [{ day, previous_as_of: '2026-03-10 02:00:00+00', apps_changed: '3' }]

  it('name the days that are not settled and changed, where the others are taken over', async () => {
    deliver(LATE_DAY, 'late.csv')
    expect(takenOver(await nextNight())).toBe(SETTLED_THROUGH)
    expect(await restatedBy()).toEqual(restated(LATE_DAY))
  })

  it('name a settled day that changed, once', async () => {
    deliver(SETTLED_DAY, 'late.csv')
    await nextNight()
    expect(await restatedBy()).toEqual(restated(SETTLED_DAY))
    await nextNight()
    expect(await restatedBy()).toEqual([])
  })

  it('compare with what is public, when the snapshot that first had the days is retracted', async () => {
    deliver(SETTLED_DAY, 'late.csv')
    await nextNight()
    const ended = await runCommand(dataDir, 'retract', '20260311T020000Z', '--reason', 'A test')
    expect(ended.code).toBe(0)
    expect(takenOver(await nextNight())).toBe(SETTLED_THROUGH)
    expect(await restatedBy()).toEqual(restated(SETTLED_DAY))
  })
})

it('whatever comes in whatever order, each night publishes what it would anew', async () => {
  const random = randomFrom(seedFrom('SETTLED_SEED'))
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]
  const changes: readonly (() => unknown)[] = [
    () => deliver(pick(HISTORY) ?? '', 'late.csv', 1 + Math.floor(random() * 100)),
    () => rmSync(join(dataDir, `raw/usage/date=${pick(HISTORY)}`), { recursive: true, force: true }),
    () => register(`${pick([1, 3, 4, 6, 7])},Some,${pick(['public', 'hidden'])},game,,${today}`),
    () => register(`${pick([3, 4, 7])},Some,public,,${pick([1, 2])},${today}`),
    () => (today = addDays(today, 20)),
    () => undefined,
    () => undefined,
  ]
  for (let number = 0; number < 6; number += 1) {
    pick(changes)?.()
    await nextNight()
    await expectAsAnew()
  }
})
