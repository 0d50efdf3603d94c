/**
 * Directory sync's part of the bench: a first sync and unchanged ones beside a bare client that makes the same requests,
 * then the waits of others while a service syncs.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { directories } from '../../../api/commands/directories.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { clientOf, makeKey, until } from '../../support/api.ts'
import { runCommandLine, type Command } from '../../support/processes.ts'
import {
  besideBaseline,
  casesOf,
  figure,
  inTemporaryFolder,
  megabytesOf,
  percentile,
  printTable,
  seconds,
  takeTurns,
  timed,
} from '../measure.ts'
import type { Options, Print } from '../measure.ts'
import { startFile, startService } from '../servers.ts'
import type * as cases from './cases.ts'
import type { DirectoryTask } from './directory.ts'

type DirectorySize = Pick<DirectoryTask, 'groups' | 'membersPerGroup'>

/** Sizes of the cases. */
export type Sizes = {
  /** Runs of each case; the median counts. */
  readonly runs: number
  readonly usual: DirectorySize
  /** The limits of a sync, once. */
  readonly large: DirectorySize
  /** Of the syncs in a service. */
  readonly service: DirectorySize
  /** Milliseconds per page of the slow directory, still faster than real ones. */
  readonly pageMs: number
}

const SIZES: Sizes = {
  runs: 5,
  usual: { groups: 10_000, membersPerGroup: 20 },
  large: { groups: 100_000, membersPerGroup: 5 },
  service: { groups: 10_000, membersPerGroup: 50 },
  pageMs: 20,
}

const measure = casesOf<typeof cases>(new URL('cases.ts', import.meta.url))
const startDirectory = (task: DirectoryTask) => startFile(new URL('directory.ts', import.meta.url), task)

/** Runs the cases, with `large` on the largest allowed directory, and prints their tables. */
export async function benchScim(print: Print, { large, sizes = SIZES }: Options<Sizes>): Promise<void> {
  const size = large ? sizes.large : sizes.usual
  const runs = large ? 1 : sizes.runs
  await inTemporaryFolder((folder) => benchSyncs(print, folder, { ...sizes, size, runs }))
  await inTemporaryFolder((folder) => benchService(print, folder, sizes.service))
}

/** Connects the account "bench", which is made if it is missing; returns a key of it. */
async function connectDirectory(dataDir: string, origin: string): Promise<string> {
  const key = await makeKey({ DATA_DIR: dataDir }, 'management', 'bench')
  const to = ['--account', 'bench', '--url', `${origin}/scim/v2`, '--token-env', 'BENCH_TOKEN']
  const args = ['set', ...to, '--allow-loopback', '--gate-percent', '100']
  const connect: Command = (line) => directories(line, () => undefined)
  const { code, stderr } = await runCommandLine(connect, args, { DATA_DIR: dataDir })
  if (code !== 0) throw new Error(stderr)
  return key
}

type Syncs = Pick<Sizes, 'runs' | 'pageMs'> & { readonly size: DirectorySize }

/** (a) to (c). */
async function benchSyncs(print: Print, folder: string, { size, runs, pageMs }: Syncs): Promise<void> {
  const turns = runs === 1 ? 'one run' : `medians of ${runs} runs that take turns`
  print(`\nscim: ${sizeText(size)}; ${turns}; SQLite; peaks in MB`)
  const rows: string[][] = []
  // The store of the first sync's first run, which the unchanged syncs reuse.
  for (const [name, delay, storeOf] of [
    ['a: first sync', 0, (run: number) => `run-${run}`],
    ['b: unchanged', 0, () => 'run-0'],
    [`c: unchanged, ${pageMs} ms a page`, pageMs, () => 'run-0'],
  ] as const) {
    await using directory = await startDirectory({ ...size, pageMs: delay })
    const [bare, sync] = await takeTurns(
      runs,
      () => measure('readPages', { url: `${directory.origin}/scim/v2` }),
      async (run) => {
        const dataDir = join(folder, storeOf(run))
        await connectDirectory(dataDir, directory.origin)
        return measure('sync', { dataDir })
      },
    )
    const requests = figure(sync, 'requests')
    if (figure(bare, 'requests') !== requests) throw new Error(`${name}: the bare client made other requests`)
    rows.push([name, String(requests), ...besideBaseline(bare, sync)])
  }
  printTable(print, ['case', 'requests', 'bare s', 'sync s', 'ratio', 'bare peak', 'sync peak'], rows)
}

function sizeText({ groups, membersPerGroup }: DirectorySize): string {
  return `${groups} groups with ${groups * membersPerGroup} memberships`
}

const jobSchema = z.object({ data: z.object({ id: z.string(), status: z.string() }) })

/**
 * (d) and (e): `/healthz`, which shows the event loop, and a request that takes the store's write lock, while a service
 * syncs. First all members are new, then all change, so that the last transaction switches every list.
 */
async function benchService(print: Print, folder: string, size: DirectorySize): Promise<void> {
  await using service = await startService(folder, { BENCH_TOKEN: 'bench-token' })
  const store = await openStore({ DATA_DIR: folder })
  const otherKey = await makeKey({ DATA_DIR: folder }, 'management', 'other')
  const get = clientOf(service.origin)
  const post = (key: string) => get('/scim/sync-jobs', key, { method: 'POST' })
  const jobOf = async (reply: Response) => jobSchema.parse(await reply.json()).data
  const sync = async (key: string) => {
    const { id } = await jobOf(await post(key))
    const status = await until(async () => {
      const job = await jobOf(await get(`/scim/sync-jobs/${id}`, key))
      return ['succeeded', 'failed'].includes(job.status) && job.status
    })
    if (status === 'failed') throw new Error('The sync failed')
  }
  const rows: string[][] = []
  for (const [shift, name] of ['d: first sync', 'e: all members change'].entries()) {
    await using directory = await startDirectory({ ...size, pageMs: 0, shift })
    const key = await connectDirectory(folder, directory.origin)
    const health = watch(async () => (await fetch(`${service.origin}/healthz`)).text())
    const writes = watch(async () => (await post(otherKey)).text())
    const ms = await timed(() => sync(key))
    // The service then deletes the former lists.
    await until(async () => {
      const [lists] = await store.query('SELECT count(*) AS n FROM scim_member_lists')
      return Number(lists?.['n']) <= size.groups
    })
    const [waits, locked] = [await health(), await writes()]
    const figures = [percentile(waits, 0.5), percentile(waits, 0.99), Math.max(...waits), Math.max(...locked)]
    const peak = String(megabytesOf(service.child.pid, 'VmHWM'))
    rows.push([name, seconds(ms), ...figures.map((wait) => wait.toFixed(1)), peak])
  }
  await store.close()
  print(`\nscim, in a service: ${sizeText(size)}`)
  const header = ['case', 'sync s', 'healthz p50 ms', 'p99', 'longest', 'write lock, longest ms', 'peak MB']
  printTable(print, header, rows)
}

/** Does the work again and again; the returned function ends that, and resolves to the times in milliseconds. */
function watch(work: () => Promise<unknown>): () => Promise<readonly number[]> {
  const times: number[] = []
  const ending = new AbortController()
  const { signal } = ending
  const ended = (async () => {
    while (!signal.aborted) {
      times.push(await timed(work))
      await sleep(2)
    }
  })()
  return async () => {
    ending.abort()
    await ended
    return times
  }
}
