/**
 * Directory sync's part of the bench: a first sync and unchanged ones beside a bare client that makes the same
 * requests, with the requests, the rows written and the memory of each.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  figure,
  inTemporaryFolder,
  measureInChild,
  printTable,
  ratio,
  seconds,
  takeTurns,
} from '../measure.ts'
import type { Measured, Print } from '../measure.ts'
import type { Task } from './case.ts'
import type { DirectoryTask } from './directory.ts'
import { benchService } from './service.ts'

type DirectorySize = Pick<DirectoryTask, 'groups' | 'membersPerGroup'>

/** Sizes of the cases. */
export interface Sizes {
  /** Runs of each case; the median counts. */
  readonly runs: number
  readonly usual: DirectorySize
  /** The limits of a sync, once. */
  readonly large: DirectorySize
  /** Of the syncs in a service. */
  readonly service: DirectorySize
  /** Milliseconds per page of the slow directory. */
  readonly pageMs: number
}

const SIZES: Sizes = {
  runs: 5,
  usual: { groups: 10_000, membersPerGroup: 20 },
  large: { groups: 100_000, membersPerGroup: 5 },
  service: { groups: 10_000, membersPerGroup: 50 },
  pageMs: 20,
}

const CASE = new URL('case.ts', import.meta.url)
const DIRECTORY = fileURLToPath(new URL('directory.ts', import.meta.url))

function measure(task: Task): Promise<Measured> {
  return measureInChild(CASE, task)
}

/** Runs the cases, with `large` on the largest allowed directory, and prints their table. */
export async function benchScim(
  print: Print,
  { large, sizes = SIZES }: { readonly large: boolean; readonly sizes?: Sizes },
): Promise<void> {
  const runs = large ? 1 : sizes.runs
  const size = large ? sizes.large : sizes.usual
  const memberships = size.groups * size.membersPerGroup
  const turns = runs === 1 ? 'one run' : `medians of ${runs} runs that take turns`
  print(`\nscim: ${size.groups} groups with ${memberships} memberships; ${turns}; SQLite; peaks in MB`)
  const rows = await inTemporaryFolder(async (folder) => [
    ...(await benchInstant(folder, runs, size)),
    ...(await benchSlow(folder, runs, { ...size, pageMs: sizes.pageMs })),
  ])
  const header = ['case', 'requests', 'bare s', 'sync s', 'ratio', 'rows written', 'others waited ms']
  printTable(print, [...header, 'bare peak', 'sync peak'], rows)
  await inTemporaryFolder((folder) => benchService(print, folder, sizes.service, startDirectory))
}

// The store of the first sync's first run, which the unchanged syncs reuse.
const FILLED = 'run-0'

/** (a) and (b): a directory with prepared pages, so that only our own work is measured. */
async function benchInstant(folder: string, runs: number, size: DirectorySize): Promise<string[][]> {
  await using directory = await startDirectory({ ...size, pageMs: 0 })
  const { url } = directory
  const bare = () => measure({ kind: 'bare', url })
  const sync = (name: string) => measure({ kind: 'sync', url, dataDir: join(folder, name) })
  return [
    row('a: first sync', await takeTurns(runs, bare, (run) => sync(`run-${run}`))),
    row('b: unchanged', await takeTurns(runs, bare, () => sync(FILLED))),
  ]
}

/** (c): a directory with a delay per page, still faster than real ones. */
async function benchSlow(folder: string, runs: number, task: DirectoryTask): Promise<string[][]> {
  await using directory = await startDirectory(task)
  const { url } = directory
  const turns = await takeTurns(
    runs,
    () => measure({ kind: 'bare', url }),
    () => measure({ kind: 'sync', url, dataDir: join(folder, FILLED) }),
  )
  return [row(`c: unchanged, ${task.pageMs} ms a page`, turns)]
}

function row(name: string, [bare, sync]: readonly [Measured, Measured]): string[] {
  const [base, ms] = [figure(bare, 'ms'), figure(sync, 'ms')]
  const requests = figure(sync, 'requests')
  if (figure(bare, 'requests') !== requests) throw new Error(`${name}: the bare client made other requests`)
  const written = figure(sync, 'written')
  return [
    name,
    String(requests),
    seconds(base),
    seconds(ms),
    ratio(ms, base),
    String(written),
    String(Math.round(figure(sync, 'waited'))),
    megabytes(bare),
    megabytes(sync),
  ]
}

function megabytes({ peakMegabytes }: Measured): string {
  return String(Math.round(peakMegabytes))
}

async function startDirectory(task: DirectoryTask) {
  const child = spawn(process.execPath, [DIRECTORY, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  const started = once(child.stdout.setEncoding('utf8'), 'data').then(([line]) => String(line).trim())
  const url = await Promise.race([started, ended])
  if (typeof url !== 'string') throw new Error('The directory of the bench could not be started')
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill()
      await ended
    },
  }
}
