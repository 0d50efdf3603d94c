/**
 * The pipeline's part of the bench: what a day, a night and a long history cost beside the plainest way to do the
 * same work, and how much memory each takes.
 */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../../pipeline/config.ts'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import {
  type DayKind,
  type DaySize,
  EVEN_VOLUMES,
  LAST_DAY,
  makeDay,
  makeHistory,
  makeRegistry,
  makeWarehouse,
  nightAfter,
} from '../data.ts'
import {
  besideBaseline,
  casesOf,
  figure,
  inTemporaryFolder,
  millions,
  peak,
  printTable,
  ratio,
  seconds,
  takeTurns,
} from '../measure.ts'
import type { Measured, Options, Print } from '../measure.ts'
import type * as cases from './cases.ts'

/** The raw rows of one day, with or without `request_id`s. */
type NewDay = { readonly rows: number; readonly identified: boolean }

/** Sizes of the cases. */
export type Sizes = {
  /** Runs of each case; the median counts. */
  readonly runs: number
  /** A day of raw rows. */
  readonly day: { readonly rows: number; readonly apps: number }
  /** Rows of a day of chat's records in NDJSON, and of a day in compressed CSV. */
  readonly text: { readonly records: number; readonly csv: number; readonly apps: number }
  /** Two histories of these lengths, and nights with a new day each; all days have the same volume. */
  readonly night: {
    readonly histories: readonly [number, number]
    readonly apps: number
    readonly newDays: readonly NewDay[]
  }
  /** A warehouse in which each app has usage on a quarter of the days. */
  readonly large: { readonly days: number; readonly apps: number }
}

const SIZES: Sizes = {
  runs: 5,
  day: { rows: 20_000_000, apps: 1_000_000 },
  text: { records: 3_000_000, csv: 5_000_000, apps: 20_000 },
  night: {
    histories: [30, 700],
    apps: 20_000,
    newDays: [
      { rows: 2_000_000, identified: false },
      { rows: 20_000_000, identified: true },
    ],
  },
  large: { days: 400, apps: 1_000_000 },
}

const measure = casesOf<typeof cases>(new URL('cases.ts', import.meta.url))
const AS_OF = nightAfter(LAST_DAY)

/** Runs the default cases, or with `large` the large one alone, and prints a table for each kind. */
export async function benchPipeline(print: Print, { large, sizes = SIZES }: Options<Sizes>): Promise<void> {
  const { memory } = readConfig(process.env)
  print(`\npipeline: medians of ${sizes.runs} runs that take turns; DuckDB's limit ${memory}; peaks in MB`)
  if (large) return benchLarge(print, memory, sizes)
  await benchLoads(print, sizes)
  for (const newDay of sizes.night.newDays) await benchNight(print, newDay, sizes)
}

/** (a), (b) and (e) to (h): the stage load beside one GROUP BY over the same file. */
async function benchLoads(print: Print, { runs, day, text: { apps, records, csv } }: Sizes): Promise<void> {
  const loads: readonly (readonly [string, DayKind, DaySize])[] = [
    ['a: one day', 'parquet', day],
    ['b: one day with request_id', 'parquet', { ...day, identified: true }],
    ["e: chat's records, processor time", 'records', { rows: records, apps }],
    ['f: compressed CSV, processor time', 'csv', { rows: csv, apps }],
    ['g: types of a data warehouse, processor time', 'unloaded', { rows: csv, apps }],
    ['h: compressed CSV of pandas, processor time', 'pandas', { rows: csv, apps }],
  ]
  const rows: string[][] = []
  for (const [name, kind, size] of loads) {
    const clock = kind === 'parquet' ? 'wall' : 'processor'
    await inTemporaryFolder(async (dataDir) => {
      const file = await makeDay(dataDir, LAST_DAY, size, kind)
      const [scan, load] = await takeTurns(
        runs,
        () => measure('scan', { file, kind, clock }),
        () => {
          rmSync(join(dataDir, 'warehouse.duckdb'), { force: true })
          return measure('loadDay', { dataDir, asOf: AS_OF, clock })
        },
      )
      const made = `${millions(size.rows)} rows, ${millions(size.apps)} apps, ${Math.round(statSync(file).size / 1e6)} MB`
      rows.push([name, made, ...besideBaseline(scan, load)])
    })
  }
  printTable(print, ['case', 'file', 'GROUP BY s', 'load s', 'ratio', 'GROUP BY peak', 'load peak'], rows)
}

/** (c): a night with a new day, after a short history and after a long one. */
async function benchNight(print: Print, newDay: NewDay, { runs, night }: Sizes): Promise<void> {
  await inTemporaryFolder(async (folder) => {
    const [few, many] = night.histories
    const day = { ...newDay, apps: night.apps }
    const [short, long] = await takeTurns(
      runs,
      await nightsAfter(join(folder, 'short'), few, day),
      await nightsAfter(join(folder, 'long'), many, day),
    )
    print(
      `\nc: a night with one new day of ${millions(newDay.rows)} rows, ${newDay.identified ? 'with' : 'without'} request_id; ${night.apps} apps on each day before it`,
    )
    const withSpread = ({ figures, runs: all }: typeof short, name: string) => {
      const times = all.map((one) => one[name] ?? Number.NaN)
      return `${seconds(figures[name] ?? Number.NaN)} (${seconds(Math.min(...times))} to ${seconds(Math.max(...times))})`
    }
    const rows = Object.keys(short.figures).map((name) => [
      name,
      withSpread(short, name),
      withSpread(long, name),
      ratio(figure(long, name), figure(short, name)),
    ])
    const peaks = ['peak', peak(short), peak(long), ratio(long.peakMegabytes, short.peakMegabytes)]
    const header = ['', `${few} days s (all runs)`, `${many} days s (all runs)`, 'ratio']
    printTable(print, header, [...rows, peaks])
  })
}

/** Publishes a history; returns the work of the nights after it, each with one new day. */
async function nightsAfter(
  dataDir: string,
  days: number,
  newDay: NewDay & { readonly apps: number },
): Promise<(run: number) => Promise<Measured>> {
  const { rows, apps } = newDay
  await makeRegistry(dataDir, apps)
  await makeHistory(dataDir, { days, apps, requests: Math.round(rows / apps) })
  await measure('wholeNight', { dataDir, asOf: AS_OF })
  return async (run) => {
    const day = addDays(LAST_DAY, run + 1)
    await makeDay(dataDir, day, newDay)
    return measure('wholeNight', { dataDir, asOf: nightAfter(day) })
  }
}

/** (d): every stage after load over a long and wide history, once. */
async function benchLarge(print: Print, memory: string, { large }: Sizes): Promise<void> {
  await inTemporaryFolder(async (dataDir) => {
    await makeRegistry(dataDir, large.apps)
    await makeWarehouse(dataDir, EVEN_VOLUMES, { memory, ...large })
    const stages = await measure('laterStages', { dataDir, asOf: AS_OF })
    const table = await measure('bareTable', { dataDir })
    const base = figure(table, 'ms')
    const snapshot = statSync(join(dataDir, 'current', SNAPSHOT_FILE)).size
    const appDays = millions(Math.round((large.apps * large.days) / 4))
    print(
      `\nd: ${millions(large.apps)} apps, about ${appDays} app-days; snapshot ${Math.round(snapshot / 1e6)} MB, once`,
    )
    const whole = Object.values(stages.figures).reduce((sum, ms) => sum + ms, 0)
    const times = Object.entries({ 'bare table, joined and in order': base, ...stages.figures, whole })
    printTable(
      print,
      ['', 'seconds', 'ratio to the bare table'],
      [
        ...times.map(([name, ms]) => [name, seconds(ms), ratio(ms, base)]),
        ['peak, stages', peak(stages), ''],
        ['peak, bare table', peak(table), ''],
      ],
    )
  })
}
