/** Shared by the parts of the bench: measured runs in separate processes, medians, tables. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/** Prints a line of the result; stdout in the entry file. */
export type Print = (line: string) => void

/** Output of a measured process: figures by name, and its peak memory. */
const measuredSchema = z.object({ figures: z.record(z.string(), z.number()), peakMegabytes: z.number() })
export type Measured = z.infer<typeof measuredSchema>

/** Runs `work` with a temporary folder and removes it afterwards, also after an error. */
export async function inTemporaryFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Milliseconds that `work` takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** The median; of an even number the upper of the two. */
function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

/** The quantile; with few values the largest value. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** Runs a file in a separate process, to measure its memory; `task` arrives as JSON argument. */
export async function measureInChild(file: URL, task: object): Promise<Measured> {
  const child = spawn(process.execPath, [fileURLToPath(file), JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  child.once('error', reject).once('close', resolve)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const code = await promise
  if (code !== 0) throw new Error(`${file.href} ended with ${code}: ${JSON.stringify(task)}`)
  return measuredSchema.parse(JSON.parse(output))
}

/** The child's side of measureInChild: sends the figures, with the peak memory of this process. */
export function reportMeasured(figures: Readonly<Record<string, number>>): void {
  const measured: Measured = { figures, peakMegabytes: highWaterMark() }
  process.stdout.write(JSON.stringify(measured))
}

const PROCESS_STATUS = '/proc/self/status'

/** In megabytes. Linux includes the parent's memory in maxRSS, so there the process's own high-water mark is read. */
function highWaterMark(): number {
  const kilobytes = existsSync(PROCESS_STATUS)
    ? Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(PROCESS_STATUS, 'utf8'))?.[1])
    : process.resourceUsage().maxRSS
  return (kilobytes * 1024) / 1e6
}

/** Present memory of another process in megabytes; 0 if the system does not report it. */
export function residentMegabytes(pid: number | undefined): number {
  const file = `/proc/${pid}/status`
  if (!existsSync(file)) return 0
  return Math.round((Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(file, 'utf8'))?.[1]) * 1024) / 1e6)
}

/** Medians of the figures of several runs, with the highest peak. */
export interface Medians extends Measured {
  /** The figures of each run. */
  readonly runs: readonly Measured['figures'][]
}

function mediansOf(runs: readonly Measured[]): Medians {
  const names = Object.keys(runs[0]?.figures ?? {})
  return {
    figures: Object.fromEntries(
      names.map((name) => [name, median(runs.map(({ figures }) => figures[name] ?? Number.NaN))]),
    ),
    peakMegabytes: Math.max(...runs.map(({ peakMegabytes }) => peakMegabytes)),
    runs: runs.map(({ figures }) => figures),
  }
}

/** Measures cases in turns, so that a busy machine affects all equally. Resolves to the medians of each. */
export async function measureInTurns<Thing>(
  runs: number,
  things: readonly Thing[],
  measure: (thing: Thing, run: number) => Promise<Measured>,
): Promise<(thing: Thing) => Medians> {
  const taken = new Map<Thing, Measured[]>(things.map((thing) => [thing, []]))
  for (let run = 0; run < runs; run += 1) {
    for (const [thing, results] of taken) results.push(await measure(thing, run))
  }
  return (thing) => mediansOf(taken.get(thing) ?? [])
}

/** Measures two cases in turns; each gets its run's number. */
export async function takeTurns(
  runs: number,
  first: (run: number) => Promise<Measured>,
  second: (run: number) => Promise<Measured>,
): Promise<readonly [Medians, Medians]> {
  const measured = await measureInTurns(runs, [first, second], (work, run) => work(run))
  return [measured(first), measured(second)]
}

/** A Markdown table. */
export function printTable(
  print: Print,
  header: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  print([line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n'))
}

/** A required figure. */
export function figure({ figures }: Measured, name: string): number {
  const value = figures[name]
  if (value === undefined)
    throw new Error(`There is no figure "${name}" among ${Object.keys(figures).join(', ')}`)
  return value
}

/** Seconds with two digits, of milliseconds. */
export function seconds(ms: number): string {
  return (ms / 1000).toFixed(2)
}

/** Seconds of a figure in ms, with its smallest and largest run. */
export function secondsWithSpread(medians: Medians, name: string): string {
  const times = medians.runs.map((figures) => figures[name] ?? Number.NaN)
  return `${seconds(figure(medians, name))} (${seconds(Math.min(...times))} to ${seconds(Math.max(...times))})`
}

/** `a` to `b` with two digits. */
export function ratio(a: number, b: number): string {
  return (a / b).toFixed(2)
}
