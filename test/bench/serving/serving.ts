/**
 * Serving's part of the bench: uncached windows, cached replies, 304s and changing snapshots, each beside
 * the plainest way to do the same, over few apps and many.
 */
import { readConfig } from '../../../pipeline/config.ts'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { figure, inTemporaryFolder, measureInChild, printTable, ratio, seconds } from '../measure.ts'
import type { Measured, Print } from '../measure.ts'
import type { Task } from './case.ts'
import { LAST_DAY, makeServingData, type DataSize } from './data.ts'
import { READY, queryWindows, copySnapshots, measureReady, measureSwaps, type LoadSizes } from './http.ts'
import { startService } from '../servers.ts'
import { hasWrk } from '../wrk.ts'
import { benchPeer } from './peer.ts'
import { KINDS, nameOf, type Kind, type WindowCounts } from './windows.ts'

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

const CASE = new URL('case.ts', import.meta.url)

function measure(task: Task): Promise<Measured> {
  return measureInChild(CASE, task)
}

/** The results of one dataset. */
interface Outcome {
  readonly size: Case
  readonly published: Measured
  readonly windows: Measured
  readonly memory: Memory
}

/** Megabytes of the service when it listens and after uncached windows. */
type Memory = Record<'started' | 'asked', number>

/** Runs the default cases, with `large` a larger one too, and prints their tables. */
export async function benchServing(
  print: Print,
  { large, sizes = SIZES }: { readonly large: boolean; readonly sizes?: Sizes },
): Promise<void> {
  const outcomes: Outcome[] = []
  const cases = large ? [...sizes.cases, sizes.large] : sizes.cases
  for (const size of cases) {
    const loaded = size === cases.at(-1)
    outcomes.push(await inTemporaryFolder((dataDir) => benchCase(print, dataDir, { size, sizes, loaded })))
  }
  printGrowth(print, outcomes)
  await benchPeer(print, (dataDir) => publishCase(dataDir, sizes.peer), sizes.peer)
}

async function publishCase(dataDir: string, size: DataSize): Promise<Measured> {
  await makeServingData(dataDir, readConfig(process.env).memory, size)
  return await measure({ kind: 'publish', dataDir, asOf: `${addDays(LAST_DAY, 1)}T02:00:00Z` })
}

async function benchCase(
  print: Print,
  dataDir: string,
  { size, sizes, loaded }: { readonly size: Case; readonly sizes: Sizes; readonly loaded: boolean },
): Promise<Outcome> {
  const published = await publishCase(dataDir, size)
  const appDays = (figure(published, 'appDays') / 1e6).toFixed(1)
  print(
    `\nserving: ${size.apps} apps, ${size.days} days, ${appDays} million app-days, ${figure(published, 'candidates')} candidates`,
  )
  const { windows: count, plainEvery } = size
  const windows = await measure({ kind: 'windows', dataDir, windows: count, plainEvery })
  printWindows(print, { size, windows })
  const memory = await measureMemory(dataDir, sizes)
  if (loaded && hasWrk()) await benchLoad(print, dataDir, sizes)
  else if (loaded) print('b, c, d: left out, since wrk is not installed')
  return { size, published, windows, memory }
}

/** (a). */
function printWindows(print: Print, { size, windows }: Pick<Outcome, 'size' | 'windows'>) {
  print(
    `a: ${size.windows} uncached windows of each kind, ${Math.ceil(size.windows / size.plainEvery)} of them asked of plain SQL too; milliseconds; ratios are multiples of our p50`,
  )
  const rows = KINDS.map((kind) => {
    const of = (name: string) => figure(windows, `${nameOf(kind)}.${name}`)
    return [
      kind.sort,
      kind.filter,
      daysText(kind),
      milliseconds(of('p50')),
      milliseconds(of('p99')),
      milliseconds(of('plain')),
      milliseconds(of('plainP99')),
      times(of('plain'), of('p50')),
      `${of('fallBacks')} of ${size.windows}`,
      fallBackText(windows, kind),
    ]
  })
  const header = ['sort', 'filter', 'window', 'p50', 'p99', 'plain p50', 'plain p99', 'ratio']
  printTable(print, [...header, 'fallen back', 'their p50 to plain'], rows)
}

function fallBackText({ figures }: Measured, kind: Kind): string {
  const ours = figures[`${nameOf(kind)}.fallBackP50`]
  const plain = figures[`${nameOf(kind)}.fallBackPlain`]
  return ours === undefined || plain === undefined ? '' : ratio(ours, plain)
}

/** (e). */
async function measureMemory(dataDir: string, { asked: count }: Sizes): Promise<Memory> {
  await using service = await startService(dataDir)
  const started = service.megabytes()
  await queryWindows(service, { dataDir, count })
  return { started, asked: service.megabytes() }
}

/** (b) to (d). */
async function benchLoad(print: Print, dataDir: string, sizes: Sizes): Promise<void> {
  const ids = await copySnapshots(dataDir, sizes.swaps)
  await using service = await startService(dataDir)
  const rows: string[][] = []
  for (const ready of READY) {
    let bare: number | undefined
    for (const { name, measured } of await measureReady(ready, service, { dataDir, sizes })) {
      const perSecond = figure(measured, 'perSecond')
      bare ??= perSecond
      rows.push([`${ready.name}, ${name}`, ...loadCells(measured), ratio(perSecond, bare)])
    }
  }
  const swaps = await measureSwaps(service, { dataDir, ids, sizes })
  rows.push([`d: ${figure(swaps, 'opened')} of ${ids.length} new snapshots`, ...loadCells(swaps), ''])
  print(
    `\nb, c: medians of ${sizes.runs} runs of ${sizes.seconds} s that take turns; d: a new snapshot each second; ${sizes.connections} connections; milliseconds`,
  )
  const header = ['case', 'requests/s', 'p50', 'p99', 'slowest', 'failed', 'ratio to bare']
  printTable(print, header, rows)
  print(`e: memory of the service after that: ${service.megabytes()} MB`)
}

function loadCells(measured: Measured): string[] {
  const of = (name: string) => figure(measured, name)
  return [
    String(Math.round(of('perSecond'))),
    of('p50').toFixed(2),
    of('p99').toFixed(2),
    of('slowest').toFixed(1),
    String(of('failed')),
  ]
}

/** Growth with the number of apps, side by side. */
function printGrowth(print: Print, outcomes: readonly Outcome[]): void {
  const sizes = outcomes.map(({ size }) => `${size.apps} apps`)
  print('\ngrowth: p50 of uncached windows without filter, milliseconds, ours and plain')
  const kinds = KINDS.filter(({ filter }) => filter === 'none')
  const cell = ({ windows }: Outcome, kind: Kind, name: string) =>
    milliseconds(figure(windows, `${nameOf(kind)}.${name}`))
  printTable(
    print,
    ['sort', 'window', ...sizes, ...sizes.map((name) => `plain, ${name}`)],
    kinds.map((kind) => [
      kind.sort,
      daysText(kind),
      ...outcomes.map((outcome) => cell(outcome, kind, 'p50')),
      ...outcomes.map((outcome) => cell(outcome, kind, 'plain')),
    ]),
  )
  print('\nsnapshot and memory, MB; "fast" is what serves speed alone')
  printTable(print, ['', ...sizes], sizeRows(outcomes))
}

function sizeRows(outcomes: readonly Outcome[]): string[][] {
  const row = (name: string, cell: (outcome: Outcome) => string) => [name, ...outcomes.map(cell)]
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1)
  return [
    row('million app-days', ({ published }) => (figure(published, 'appDays') / 1e6).toFixed(1)),
    row('candidates', ({ published }) => String(figure(published, 'candidates'))),
    row('snapshot', ({ published }) => megabytes(figure(published, 'bytes'))),
    row('of it fast', ({ published }) => megabytes(figure(published, 'fastBytes'))),
    row('fast to the rest', ({ published }) => {
      const fast = figure(published, 'fastBytes')
      return ratio(fast, figure(published, 'bytes') - fast)
    }),
    row('resolve to publish s', ({ published }) => seconds(figure(published, 'publishMs'))),
    row('of it fast s', ({ published }) => seconds(figure(published, 'fastMs'))),
    row('fast s to the rest', ({ published }) => {
      const fast = figure(published, 'fastMs')
      return ratio(fast, figure(published, 'publishMs') - fast)
    }),
    row('e: service, listening', ({ memory }) => String(memory.started)),
    row('e: after uncached windows', ({ memory }) => String(memory.asked)),
  ]
}

function daysText({ length }: Pick<Kind, 'length'>): string {
  return length === 1 ? '1 day' : length === 'whole' ? 'whole' : `${length} days`
}

function milliseconds(ms: number): string {
  return ms < 100 ? ms.toFixed(1) : String(Math.round(ms))
}

/** Ratio of the duration of `other`. */
function times(other: number, ours: number): string {
  return (other / ours).toFixed(1)
}
