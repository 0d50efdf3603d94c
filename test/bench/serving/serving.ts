/**
 * Serving's part of the bench: uncached windows, cached replies and 304s, each beside the plainest way to do the same, over
 * few apps and many.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../../pipeline/config.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { LAST_DAY, makeRegistry, makeWarehouse, nightAfter, powerLaw, type WarehouseSize } from '../data.ts'
import { casesOf, figure, inTemporaryFolder, printTable, ratio, residentMegabytes } from '../measure.ts'
import type { Measured, Options, Print } from '../measure.ts'
import type * as pipelineCases from '../pipeline/cases.ts'
import { startService } from '../servers.ts'
import { hasWrk } from '../wrk.ts'
import { makeClient, measureReady, RANKINGS, READY, type LoadSizes } from './load.ts'
import { benchPeer, randomWindows, type Windows } from './peer.ts'
import { KINDS, nameOf } from './windows.ts'
import type * as windowCases from './windows.ts'

/** One dataset, and how many windows of each kind are queried. */
type Case = WarehouseSize & { readonly windows: number }

/** Sizes of the cases. */
export type Sizes = LoadSizes & {
  readonly cases: readonly Case[]
  /** The case that `--large` adds. */
  readonly large: Case
  /** The case beside FastAPI, with the share of the days on which rare apps have usage. */
  readonly peer: WarehouseSize & { readonly windows: number; readonly tail: number }
  /** Different windows requested over HTTP before the service's memory is read. */
  readonly asked: number
}

const SIZES: Sizes = {
  cases: [
    { apps: 10_000, days: 730, windows: 10 },
    { apps: 100_000, days: 730, windows: 10 },
  ],
  large: { apps: 1_000_000, days: 730, windows: 3 },
  peer: { apps: 20_000, days: 400, tail: 0.8, windows: 60 },
  asked: 50,
  runs: 3,
  connections: 32,
  seconds: 2,
}

const measurePipeline = casesOf<typeof pipelineCases>(new URL('../pipeline/cases.ts', import.meta.url))
const measureHere = casesOf<typeof windowCases>(new URL('windows.ts', import.meta.url))

/** Runs the default cases, with `large` a larger one too, and prints their tables. */
export async function benchServing(print: Print, { large, sizes = SIZES }: Options<Sizes>): Promise<void> {
  const cases = large ? [...sizes.cases, sizes.large] : sizes.cases
  for (const size of cases) {
    await inTemporaryFolder(async (dataDir) => {
      await publish(dataDir, size)
      await benchWindows(print, dataDir, size)
      await benchMemory(print, dataDir, { days: size.days, windows: sizes.asked })
      if (size !== cases.at(-1)) return
      if (hasWrk()) await benchLoad(print, dataDir, sizes)
      else print('b, c: left out, since wrk is not installed')
    })
  }
  await benchPeer(print, (dataDir) => publish(dataDir, sizes.peer, sizes.peer.tail), sizes.peer)
}

/** Publishes a snapshot of public apps. */
async function publish(dataDir: string, { apps, days }: WarehouseSize, tail?: number): Promise<void> {
  await makeRegistry(dataDir, apps, true)
  await makeWarehouse(dataDir, powerLaw(tail), { memory: readConfig(process.env).memory, apps, days })
  await measurePipeline('laterStages', { dataDir, asOf: nightAfter(LAST_DAY) })
}

/** (a). */
async function benchWindows(print: Print, dataDir: string, size: Case): Promise<void> {
  const { apps, days, windows } = size
  const megabytes = Math.round(statSync(join(dataDir, 'current', SNAPSHOT_FILE)).size / 1e6)
  print(`\nserving: ${apps} apps, ${days} days, snapshot ${megabytes} MB`)
  const measured = await measureHere('measureWindows', { dataDir, windows })
  print(`a: medians of ${windows} uncached windows of each kind; milliseconds`)
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

/** (d). */
async function benchMemory(print: Print, dataDir: string, asked: Windows): Promise<void> {
  await using service = await startService(dataDir)
  const started = residentMegabytes(service.child.pid)
  const ask = await makeClient(dataDir, asked.windows)
  for (const [index, window] of randomWindows(asked).entries())
    await ask(`${service.origin}${RANKINGS}?sort=${SORTS[index % SORTS.length]}&${window}`)
  const after = residentMegabytes(service.child.pid)
  print(
    `d: memory of the service: ${started} MB listening, ${after} MB after ${asked.windows} uncached windows`,
  )
}

/** (b) and (c). */
async function benchLoad(print: Print, dataDir: string, sizes: Sizes): Promise<void> {
  await using service = await startService(dataDir)
  const rows: string[][] = []
  for (const ready of READY) {
    const [bare, own] = await measureReady(ready, service, { dataDir, sizes })
    const share = ratio(figure(own, 'perSecond'), figure(bare, 'perSecond'))
    rows.push([`${ready.name}, bare Express`, ...loadCells(bare), ''])
    rows.push([`${ready.name}, service`, ...loadCells(own), share])
  }
  print(
    `\nb, c: medians of ${sizes.runs} runs of ${sizes.seconds} s that take turns; ${sizes.connections} connections; milliseconds`,
  )
  printTable(print, ['case', 'requests/s', 'p50', 'p99', 'slowest', 'failed', 'ratio to bare'], rows)
}

function loadCells(measured: Measured): string[] {
  const of = (name: string) => figure(measured, name)
  const times = [of('p50').toFixed(2), of('p99').toFixed(2), of('slowest').toFixed(1)]
  return [String(Math.round(of('perSecond'))), ...times, String(of('failed'))]
}
