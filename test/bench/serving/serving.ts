/**
 * Serving's part of the bench: uncached windows, cached replies, 304s and changing snapshots, each beside the plainest way
 * to do the same, over few apps and many.
 */
import { readConfig } from '../../../pipeline/config.ts'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import {
  figure,
  inTemporaryFolder,
  measureInChild,
  printTable,
  ratio,
  residentMegabytes,
} from '../measure.ts'
import type { Measured, Print } from '../measure.ts'
import type { Task } from './case.ts'
import { LAST_DAY, makeServingData, type DataSize } from './data.ts'
import { READY, queryWindows, copySnapshots, measureReady, measureSwaps, type LoadSizes } from './http.ts'
import { startService } from '../servers.ts'
import { hasWrk } from '../wrk.ts'
import { benchPeer } from './peer.ts'
import { KINDS, nameOf, type WindowCounts } from './windows.ts'

/** One dataset and its queries. */
type Case = DataSize & WindowCounts

/** Sizes of the cases. */
export interface Sizes extends LoadSizes {
  readonly cases: readonly Case[]
  /** The case that `--large` adds. */
  readonly large: Case
  /** The case beside FastAPI. */
  readonly peer: DataSize & { readonly windows: number }
  /** Different windows requested over HTTP before the service's memory is read. */
  readonly asked: number
}

const SIZES: Sizes = {
  cases: [
    { apps: 10_000, days: 730, windows: 20, plainEvery: 2 },
    { apps: 100_000, days: 730, windows: 20, plainEvery: 2 },
  ],
  large: { apps: 1_000_000, days: 730, windows: 12, plainEvery: 4 },
  peer: { apps: 20_000, days: 400, tail: 0.8, windows: 60 },
  asked: 50,
  runs: 3,
  connections: 32,
  seconds: 2,
  swaps: 5,
}

const measure = (task: Task) => measureInChild(new URL('case.ts', import.meta.url), task)

/** Runs the default cases, with `large` a larger one too, and prints their tables. */
export async function benchServing(
  print: Print,
  { large, sizes = SIZES }: { readonly large: boolean; readonly sizes?: Sizes },
): Promise<void> {
  const cases = large ? [...sizes.cases, sizes.large] : sizes.cases
  for (const size of cases) {
    await inTemporaryFolder(async (dataDir) => {
      await benchWindows(print, dataDir, size)
      await benchMemory(print, dataDir, sizes)
      if (size !== cases.at(-1)) return
      if (hasWrk()) await benchLoad(print, dataDir, sizes)
      else print('b, c, d: left out, since wrk is not installed')
    })
  }
  await benchPeer(print, (dataDir) => publish(dataDir, sizes.peer), sizes.peer)
}

async function publish(dataDir: string, size: DataSize): Promise<Measured> {
  await makeServingData(dataDir, readConfig(process.env).memory, size)
  return await measure({ dataDir, asOf: `${addDays(LAST_DAY, 1)}T02:00:00Z` })
}

/** (a). */
async function benchWindows(print: Print, dataDir: string, size: Case): Promise<void> {
  const published = await publish(dataDir, size)
  const millions = (name: string) => (figure(published, name) / 1e6).toFixed(1)
  print(
    `\nserving: ${size.apps} apps, ${size.days} days, ${millions('appDays')} million app-days, ` +
      `${figure(published, 'candidates')} candidates; the schema fast takes ${millions('fastBytes')} of ${millions('bytes')} MB`,
  )
  const { windows, plainEvery } = size
  const measured = await measure({ dataDir, windows, plainEvery })
  print(
    `a: medians of ${windows} uncached windows of each kind, of plain SQL ${Math.ceil(windows / plainEvery)}; milliseconds`,
  )
  const rows = KINDS.map((kind) => {
    const of = (name: string) => figure(measured, `${nameOf(kind)}.${name}`)
    const unproven = measured.figures[`${nameOf(kind)}.unprovenRatio`]?.toFixed(2) ?? ''
    const window = kind.length === 'all' ? 'all data' : `${kind.length} days`
    const times = [of('ms').toFixed(1), of('plain').toFixed(1), (of('plain') / of('ms')).toFixed(1)]
    return [kind.sort, kind.filter, window, ...times, `${of('unproven')} of ${windows}`, unproven]
  })
  const header = ['sort', 'filter', 'window', 'service', 'plain', 'ratio', 'not proven', 'these beside plain']
  printTable(print, header, rows)
}

/** (e). */
async function benchMemory(print: Print, dataDir: string, { asked: count }: Sizes): Promise<void> {
  await using service = await startService(dataDir)
  const started = residentMegabytes(service.child.pid)
  await queryWindows(service, { dataDir, count })
  const asked = residentMegabytes(service.child.pid)
  print(`e: memory of the service: ${started} MB listening, ${asked} MB after ${count} uncached windows`)
}

/** (b) to (d). */
async function benchLoad(print: Print, dataDir: string, sizes: Sizes): Promise<void> {
  const ids = await copySnapshots(dataDir, sizes.swaps)
  await using service = await startService(dataDir)
  const rows: string[][] = []
  for (const ready of READY) {
    const [bare, ours] = await measureReady(ready, service, { dataDir, sizes })
    rows.push([`${ready.name}, bare Express`, ...loadCells(bare), ''])
    const share = ratio(figure(ours, 'perSecond'), figure(bare, 'perSecond'))
    rows.push([`${ready.name}, service`, ...loadCells(ours), share])
  }
  const swaps = await measureSwaps(service, { dataDir, ids, sizes })
  rows.push([`d: ${figure(swaps, 'opened')} of ${ids.length} new snapshots`, ...loadCells(swaps), ''])
  print(
    `\nb, c: medians of ${sizes.runs} runs of ${sizes.seconds} s that take turns; d: a new snapshot each second; ${sizes.connections} connections; milliseconds`,
  )
  printTable(print, ['case', 'requests/s', 'p50', 'p99', 'slowest', 'failed', 'ratio to bare'], rows)
}

function loadCells(measured: Measured): string[] {
  const of = (name: string) => figure(measured, name)
  const times = [of('p50').toFixed(2), of('p99').toFixed(2), of('slowest').toFixed(1)]
  return [String(Math.round(of('perSecond'))), ...times, String(of('failed'))]
}
