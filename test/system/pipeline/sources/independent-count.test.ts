/**
 * CONTRACT 7: eight nights of more than 300 apps in every format equal an independent count, after each night and from
 * scratch.
 */
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, expect, it, vi } from 'vitest'
import { addDays } from '../../../../pipeline/contract/calendar.ts'
import { GATES } from '../../../../pipeline/run-options.ts'
import { queryWarehouse, runAt } from '../../../support/pipeline/in-process.ts'
import { queryCurrent, runCommand, TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'
import { countPlainly, publishedApps } from '../../../support/pipeline/plain-count.ts'
import type { PlainApp, PlainRow } from '../../../support/pipeline/plain-count.ts'
import { randomFrom } from '../../../support/random.ts'
import { rawFile } from '../../../support/pipeline/raw-files.ts'
import type { RawColumn } from '../../../support/pipeline/raw-files.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

/** More of them in a variable: SEEDS=1,2,3,4,5. */
const SEEDS = (process.env['SEEDS'] ?? '1,2').split(',').map(Number)
const NIGHTS = 8
const APPS = 300
const FIRST_DAY = '2026-03-01'
const ENDINGS = ['csv', 'csv.gz', 'ndjson', 'parquet', 'arrow'] as const
type Ending = (typeof ENDINGS)[number]

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** Unregistered names and addresses, and registered ones in several spellings. */
const TEXTS = [
  ...Array.from({ length: 40 }, (_, index) => [
    `Tool ${index}`,
    `tool ${index}`,
    `https://tool${index}.example/x`,
  ]),
  ...Array.from({ length: APPS }, (_, index) => [`APP ${index + 1}`, `http://www.app${index + 1}.example/`]),
  ['', ' ', 'http://localhost:3000/'],
].flat()

/** Everything delivered: rows by file. */
type World = {
  readonly dataDir: string
  readonly random: () => number
  readonly files: Map<string, { readonly day: string; readonly rows: readonly PlainRow[] }>
  readonly registry: Map<number, PlainApp>
}

function pick<T>({ random }: World, values: readonly T[]): T {
  const value = values[Math.floor(random() * values.length)]
  if (value === undefined) throw new Error('There is nothing to pick')
  return value
}

function makeRegistry(): Map<number, PlainApp> {
  const ids = Array.from({ length: APPS }, (_, index) => index + 1)
  return new Map(
    ids.map((id) => [
      id,
      {
        name: `App ${id}`,
        address: id % 5 === 0 ? `https://app${id}.example` : undefined,
        visibility: id % 11 === 0 ? 'hidden' : id % 13 === 0 ? 'private' : 'public',
        alias: id % 17 === 0 ? id - 1 : undefined,
      },
    ]),
  )
}

/** The target of an alias by id, name or address. */
function registryCsv(registry: ReadonlyMap<number, PlainApp>): string {
  const rows = [...registry].map(([id, { name, address = '', visibility, alias }]) => {
    const target = alias === undefined ? undefined : registry.get(alias)
    const words = alias === undefined ? '' : alias % 2 === 0 ? (target?.address ?? target?.name) : alias
    return `${id},${address},${name},${visibility},${words},2026-01-01\n`
  })
  return `app_id,app,app_name,visibility,alias_of,updated_at\n${rows.join('')}`
}

function makeRow(world: World, day: string, isNamed: boolean): PlainRow {
  const number = (below: number) => Math.floor(world.random() * below)
  const digits = (value: number, length: number) => String(value).padStart(length, '0')
  // Rows with one request_id differ by nanoseconds, by more, or not at all.
  const fraction = `${digits(number(2), 6)}${digits(number(4) * 100, 3)}`
  const isBroken = number(300) === 0
  return {
    ts: `${day}T${digits(number(24), 2)}:00:${digits(number(2), 2)}.${fraction}Z`,
    app: isNamed ? pick(world, TEXTS) : 1 + number(APPS + 5),
    prompt: isBroken ? -1n : number(40) === 0 ? 9_007_199_254_740_993n : BigInt(number(3)),
    completion: BigInt(number(3)),
    // Rows of requests that nobody served register no app.
    requests: BigInt((isNamed ? 1 : 0) + number(4)),
    id: number(2) === 0 ? '' : `r${number(300)}`,
  }
}

/** Writes a file of new and redelivered rows, or replaces the file of that name. */
function deliver(world: World, day: string, file: string, count = 250): void {
  const ending = pick(world, ENDINGS)
  const isNamed = world.random() < 0.5
  const before = [...world.files.values()]
    .filter((other) => other.day === day)
    .flatMap(({ rows }) => rows)
    .filter(({ app, prompt }) => (typeof app === 'string') === isNamed && (prompt ?? 0n) >= 0n)
  const rows = [
    ...Array.from({ length: count }, () => makeRow(world, day, isNamed)),
    ...before.slice(0, Math.floor(world.random() * 30)),
  ]
  remove(world, day, file)
  const path = join('usage', `date=${day}`, `${file}.${ending}`)
  writeRaw(world.dataDir, path, contentOf(ending, rows))
  world.files.set(path, { day, rows })
}

function remove({ dataDir, files }: World, day: string, file: string): void {
  for (const path of files.keys()) {
    if (!path.startsWith(join('usage', `date=${day}`, `${file}.`))) continue
    rmSync(join(dataDir, 'raw', path))
    files.delete(path)
  }
}

function contentOf(ending: Ending, rows: readonly PlainRow[]): Uint8Array {
  const column = (read: (row: PlainRow) => string | bigint): RawColumn[1] => rows.map(read)
  const isNamed = typeof rows[0]?.app === 'string'
  const columns: RawColumn[] = [
    ['ts', column(({ ts }) => ts)],
    isNamed ? ['app', column(({ app }) => String(app))] : ['app_id', column(({ app }) => BigInt(app))],
    ['prompt_tokens', column(({ prompt }) => prompt ?? 0n)],
    ['completion_tokens', column(({ completion }) => completion ?? 0n)],
    ['requests', column(({ requests }) => requests)],
    ['request_id', column(({ id }) => id)],
  ]
  return ending === 'csv.gz' ? gzipSync(rawFile('csv', columns)) : rawFile(ending, columns)
}

/** An export of a source for two days, which replaces its earlier rows of them. */
async function importSource(world: World, days: readonly string[]): Promise<void> {
  const path = join(world.dataDir, 'export.csv')
  const rows = days.flatMap((day) => Array.from({ length: 120 }, () => makeRow(world, day, true)))
  writeFileSync(path, contentOf('csv', rows))
  const ended = await runCommand(world.dataDir, 'import', path, '--source', 'gateway')
  expect(ended.code, ended.stderr).toBe(0)
  for (const day of days) {
    world.files.set(`gateway ${day}`, { day, rows: rows.filter(({ ts }) => ts.startsWith(day)) })
  }
}

/** A night's new day, late and corrected files of other days, an export, and a removal. */
async function bringNight(world: World, night: number): Promise<string> {
  const day = addDays(FIRST_DAY, night)
  for (const file of ['a', 'b', 'c', 'd']) deliver(world, day, file)
  if (night > 0) deliver(world, addDays(FIRST_DAY, Math.floor(world.random() * night)), `late-${night}`, 40)
  if (night > 1) deliver(world, addDays(FIRST_DAY, night - 2), 'a')
  if (night === 5) remove(world, addDays(FIRST_DAY, 1), 'b')
  await importSource(world, night > 0 ? [addDays(day, -1), day] : [day])
  if (night === 4) world.registry.set(2, { name: 'App 2', visibility: 'hidden' })
  if (night === 6) world.registry.set(9, { name: 'App 9', visibility: 'public', alias: 10 })
  writeRaw(world.dataDir, 'apps/registry.csv', registryCsv(world.registry))
  return `${addDays(day, 1)}T02:00:00Z`
}

/** The expected figures of each day: of the ledger, of all apps, and published. */
function expected({ files, registry }: World) {
  const byDay = Map.groupBy(files.values(), ({ day }) => day)
  const days = [...byDay].toSorted(([left], [right]) => (left < right ? -1 : 1))
  const counted = days.map(([day, parts]) => ({ day, ...countPlainly(parts.flatMap(({ rows }) => rows)) }))
  const usage = counted.flatMap(({ day, apps }) =>
    [...apps].map(([app, figures]) => ({ day, app, ...figures })),
  )
  const leads = publishedApps(
    usage.map(({ app }) => app),
    registry,
    TEXTS,
  )
  const published = new Map<string, (typeof usage)[number]>()
  for (const row of usage) {
    const app = leads.get(row.app)
    if (app === undefined) continue
    const sum = published.get(`${row.day} ${app}`) ?? {
      ...row,
      app,
      requests: 0n,
      prompt: 0n,
      completion: 0n,
    }
    sum.requests += row.requests
    sum.prompt += row.prompt
    sum.completion += row.completion
    published.set(`${row.day} ${app}`, sum)
  }
  return {
    ledger: counted.map(({ day, rejected, duplicates, conflicts }) =>
      textOf({ day, rejected, duplicates, conflicts }),
    ),
    usage: usage.map(textOf).toSorted(),
    published: [...published.values()].map(textOf).toSorted(),
  }
}

function textOf(row: object): string {
  return Object.values(row).map(String).join(' ')
}

async function found(dataDir: string) {
  const figures = 'requests, prompt_tokens, completion_tokens'
  const ledger = await queryWarehouse(
    dataDir,
    'SELECT day, rows_rejected, rows_duplicate, rows_conflicting FROM days ORDER BY day',
  )
  const usage = await queryWarehouse(dataDir, `SELECT day, app_id, ${figures} FROM usage_daily`)
  const published = await queryCurrent(dataDir, `SELECT day, app_id, ${figures} FROM app_daily`)
  return {
    ledger: ledger.map(textOf),
    usage: usage.map(textOf).toSorted(),
    published: published.map(textOf).toSorted(),
  }
}

it.each(SEEDS)('every figure of every night equals the independent count, seed %i', async (seed) => {
  const world: World = {
    dataDir: folders.make(),
    random: randomFrom(seed),
    files: new Map(),
    registry: makeRegistry(),
  }
  let asOf = ''
  for (let night = 0; night < NIGHTS; night += 1) {
    asOf = await bringNight(world, night)
    await runAt(world.dataDir, asOf, { accepted: GATES })
    expect(await found(world.dataDir), `night ${night}`).toEqual(expected(world))
  }
  const anew = folders.make()
  cpSync(join(world.dataDir, 'raw'), join(anew, 'raw'), { recursive: true })
  rmSync(join(anew, 'raw', 'apps', 'by-name.ndjson'))
  await runAt(anew, asOf)
  expect(await found(anew)).toEqual(expected(world))
})
