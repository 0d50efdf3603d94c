/** Shared by the parts of the bench: measured runs in separate processes, medians, tables. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { startProcess } from '../support/processes.ts'

/** Prints a line of the result; stdout in the entry file. */
export type Print = (line: string) => void

/** How a part of the bench runs: with its large case, and with other sizes than the usual ones. */
export type Options<Sizes> = { readonly large: boolean; readonly sizes?: Sizes }

/** Output of a measured process: figures by name, and its peak memory. */
const measuredSchema = z.object({ figures: z.record(z.string(), z.number()), peakMegabytes: z.number() })
export type Measured = z.infer<typeof measuredSchema>

/** What a measured function resolves to. */
export type Figures = Promise<Measured['figures']>

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

/** Milliseconds of processor time that `work` takes in this process, all threads together. */
async function processorTimed(work: () => Promise<unknown>): Promise<number> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

/** How a case is timed. */
export const CLOCKS = { wall: timed, processor: processorTimed }

/** The quantile; with few values the largest value, and of an even number the upper median. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

type TaskOf<Case> = Case extends (task: infer Task) => unknown ? Task : never
const CASE = fileURLToPath(new URL('case.ts', import.meta.url))

/** Runs an exported function of a file in a separate process, to measure its memory; it resolves to its figures. */
export function casesOf<Cases>(file: URL) {
  return async <Name extends keyof Cases & string>(
    name: Name,
    task: TaskOf<Cases[Name]>,
  ): Promise<Measured> => {
    const args = [CASE, file.href, name, JSON.stringify(task)]
    const { code, stdout, stderr } = await startProcess(process.execPath, args).ended
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`)
    return measuredSchema.parse(JSON.parse(stdout))
  }
}

/**
 * Memory of a process in megabytes, at present or at most; 0 if the system does not report it. Linux includes the memory of
 * a parent in maxRSS, so its own marks are read.
 */
export function megabytesOf(pid: number | undefined, mark: 'VmRSS' | 'VmHWM'): number {
  const file = `/proc/${pid}/status`
  if (!existsSync(file)) return 0
  const kilobytes = new RegExp(`^${mark}:\\s+(\\d+)`, 'm').exec(readFileSync(file, 'utf8'))?.[1]
  return Math.round((Number(kilobytes) * 1024) / 1e6)
}

/** Present memory of another process in megabytes. */
export const residentMegabytes = (pid: number | undefined) => megabytesOf(pid, 'VmRSS')

/** Medians of the figures of several runs, with the highest peak. */
type Medians = Measured & {
  /** The figures of each run. */
  readonly runs: readonly Measured['figures'][]
}

function mediansOf(measured: readonly Measured[]): Medians {
  const runs = measured.map(({ figures }) => figures)
  const names = Object.keys(runs[0] ?? {})
  const valuesOf = (name: string) => runs.map((figures) => figures[name] ?? Number.NaN)
  return {
    figures: Object.fromEntries(names.map((name) => [name, percentile(valuesOf(name), 0.5)])),
    peakMegabytes: Math.max(...measured.map(({ peakMegabytes }) => peakMegabytes)),
    runs,
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

/** Cells of a baseline and a subject: seconds of both, their ratio, and both peaks. */
export function besideBaseline(baseline: Measured, subject: Measured): string[] {
  const [base, ms] = [figure(baseline, 'ms'), figure(subject, 'ms')]
  return [seconds(base), seconds(ms), ratio(ms, base), peak(baseline), peak(subject)]
}

/** Seconds with two digits, of milliseconds. */
export const seconds = (ms: number) => (ms / 1000).toFixed(2)

/** `a` to `b` with two digits. */
export const ratio = (a: number, b: number) => (a / b).toFixed(2)

/** Peak memory in whole megabytes. */
export const peak = ({ peakMegabytes }: Measured) => String(Math.round(peakMegabytes))

/** A count in millions. */
export const millions = (count: number) => `${count / 1e6} million`
