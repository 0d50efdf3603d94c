/** One measured run of directory sync's part of the bench, in a separate process; the task is a JSON argument. */
import { subscribe } from 'node:diagnostics_channel'
import { Agent } from 'undici'
import { z } from 'zod'
import { createKey } from '../../../api/accounts/key-store.ts'
import { createLog } from '../../../api/process/log.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { SYNC_LIMITS } from '../../../api/scim/client.ts'
import { findConnectionByName, NEW_CONNECTION, putConnection } from '../../../api/scim/connections.ts'
import { LEASE_MS, syncNow } from '../../../api/scim/jobs.ts'
import type { Store } from '../../../api/store/store.ts'
import { reportMeasured, timed } from '../measure.ts'

/** A sync, or without `dataDir` the bare client. */
const taskSchema = z.object({ url: z.string(), dataDir: z.string().optional() })
export type Task = z.input<typeof taskSchema>

/** Requests of this process. */
let requests = 0
subscribe('undici:request:create', () => {
  requests += 1
})

/** Baseline: the same requests, each page read and parsed, without further work. */
async function bare(url: string): Promise<void> {
  const { origin, pathname } = new URL(url)
  const agent = new Agent()
  const get = async (path: string): Promise<unknown> => {
    const { body } = await agent.request({ origin, path: `${pathname}${path}`, method: 'GET' })
    return await body.json()
  }
  const pageSchema = z.object({ Resources: z.array(z.unknown()) })
  await get('/ServiceProviderConfig')
  const [count = 1] = SYNC_LIMITS.pageSizes
  // A full page may not be the last.
  for (let rows = 0, isFull = true; isFull;) {
    const { Resources } = pageSchema.parse(await get(`/Groups?startIndex=${rows + 1}&count=${count}`))
    rows += Resources.length
    isFull = Resources.length === count
  }
  await agent.close()
}

/** One sync like `npm run directories -- sync`, of the account in the store, which is created if missing. */
async function sync(store: Store, url: string): Promise<void> {
  const account = 'bench'
  if ((await findConnectionByName(store, account)) === undefined)
    await createKey(store, { account, kind: 'management', now: new Date() })
  const token = { token_kind: 'env', token_source: 'BENCH_TOKEN' } as const
  await putConnection(store, account, { ...NEW_CONNECTION, ...token, url, allow_loopback: 1 }, new Date())
  const accountId = (await findConnectionByName(store, account))?.account_id ?? ''
  const job = await syncNow(
    accountId,
    { signal: new AbortController().signal, allowDeletions: false, progress: () => undefined },
    {
      store,
      clock: () => new Date(),
      log: createLog('silent'),
      environment: { BENCH_TOKEN: 'bench-token' },
      limits: SYNC_LIMITS,
      leaseMs: LEASE_MS,
      syncMs: 600_000,
      note: () => undefined,
    },
  )
  if (job.failure !== null) throw new Error(`The sync failed: ${job.failure}`)
}

const { url, dataDir } = taskSchema.parse(JSON.parse(process.argv[2] ?? ''))
const store = dataDir === undefined ? undefined : await openStore({ DATA_DIR: dataDir }, new Date())
const ms = await timed(() => (store === undefined ? bare(url) : sync(store, url)))
await store?.close()
reportMeasured({ ms, requests })
