/**
 * The waits of others while a service syncs: `/healthz`, which shows the event loop, and a request with a key that takes
 * the store's write lock. First all members are new, then all change, so that the last transaction switches every list.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { createKey } from '../../../api/accounts/key-store.ts'
import { NEW_CONNECTION, putConnection } from '../../../api/scim/connections.ts'
import { openStore } from '../../../api/store/open-store.ts'
import type { Store } from '../../../api/store/store.ts'
import { startServer } from '../../support/api.ts'
import { percentile, printTable, seconds, timed, type Print } from '../measure.ts'
import type { DirectoryTask } from './directory.ts'

const TOKEN = { token_kind: 'env', token_source: 'BENCH_TOKEN' } as const
const jobSchema = z.object({
  data: z.object({ id: z.string(), status: z.string(), error_message: z.string().nullable() }),
})

type StartDirectory = (task: DirectoryTask) => Promise<{ readonly url: string } & AsyncDisposable>

/** Prints a row per sync: its time, and the waits of others in milliseconds. */
export async function benchService(
  print: Print,
  folder: string,
  size: Pick<DirectoryTask, 'groups' | 'membersPerGroup'>,
  startDirectory: StartDirectory,
): Promise<void> {
  const server = await startServer({ DATA_DIR: folder, BENCH_TOKEN: 'bench-token', LOG_LEVEL: 'info' })
  const store = await openStore({ DATA_DIR: folder }, new Date())
  const rows: string[][] = []
  try {
    const key = await createKey(store, { account: 'bench', kind: 'management', now: new Date() })
    const otherKey = await createKey(store, { account: 'other', kind: 'management', now: new Date() })
    for (const [index, name] of ['d: first sync', 'e: all members change'].entries()) {
      await using directory = await startDirectory({ ...size, pageMs: 0, shift: index })
      const connection = {
        ...NEW_CONNECTION,
        ...TOKEN,
        url: directory.url,
        allow_loopback: 1,
        gate_percent: 100,
      }
      await putConnection(store, 'bench', connection, new Date())
      const request = async (path: string, bearer: string, method = 'GET') =>
        await fetch(`${server.origin}${path}`, { method, headers: { Authorization: `Bearer ${bearer}` } })
      const health = watch(async () => (await fetch(`${server.origin}/healthz`)).text())
      const writes = watch(async () => (await request('/api/v1/scim/sync-jobs', otherKey, 'POST')).text())
      const ms = await timed(() => syncThrough(request, key))
      // The service then deletes the former lists.
      while (await hasFormerLists(store, size.groups)) await sleep(100)
      const [waits, locked] = [await health(), await writes()]
      const memory = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]
      rows.push([
        name,
        seconds(ms),
        ...[percentile(waits, 0.5), percentile(waits, 0.99), Math.max(...waits), Math.max(...locked)].map(
          (wait) => wait.toFixed(1),
        ),
        String(Math.round((Number(memory) * 1024) / 1e6)),
      ])
    }
  } finally {
    server.child.kill()
    await server.ended
    await store.close()
  }
  print(`\nscim, in a service: ${size.groups} groups with ${size.groups * size.membersPerGroup} memberships`)
  const header = ['case', 'sync s', 'healthz p50 ms', 'p99', 'longest', 'write lock, longest ms', 'peak MB']
  printTable(print, header, rows)
}

async function hasFormerLists(store: Store, groups: number): Promise<boolean> {
  const [row] = await store.query('SELECT count(*) AS lists FROM scim_member_lists')
  return Number(row?.['lists']) > groups
}

type Send = (path: string, bearer: string, method?: string) => Promise<Response>

async function syncThrough(request: Send, key: string): Promise<void> {
  const started = await request('/api/v1/scim/sync-jobs', key, 'POST')
  const { data } = jobSchema.parse(await started.json())
  for (;;) {
    const job = jobSchema.parse(await (await request(`/api/v1/scim/sync-jobs/${data.id}`, key)).json()).data
    if (job.status === 'succeeded') return
    if (job.status === 'failed') throw new Error(`The sync failed: ${job.error_message}`)
    await sleep(50)
  }
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
