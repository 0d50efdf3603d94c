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
import type { Queries, Store } from '../../../api/store/store.ts'
import { reportMeasured, timed } from '../measure.ts'

/** The cases. */
const taskSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('bare'), url: z.string() }),
  z.object({ kind: z.literal('sync'), url: z.string(), dataDir: z.string() }),
])
export type Task = z.input<typeof taskSchema>

const ACCOUNT = 'bench'
const TOKEN = { variable: 'BENCH_TOKEN', value: 'bench-token' }
const WRITES_GROUPS = /^\s*(?:INSERT|UPDATE|DELETE)\b[^(]*\bscim_(?:groups|members)\b/

/** Requests of this process. */
let requests = 0
subscribe('undici:request:create', () => {
  requests += 1
})

/** Baseline: the same requests, each page read and parsed, without further work. */
async function bare(url: string): Promise<Record<string, number>> {
  const { origin, pathname } = new URL(url)
  const agent = new Agent()
  const get = async (path: string): Promise<unknown> => {
    const { body } = await agent.request({ origin, path: `${pathname}${path}`, method: 'GET' })
    return await body.json()
  }
  const pageSchema = z.object({ totalResults: z.int(), Resources: z.array(z.unknown()).min(1) })
  const ms = await timed(async () => {
    await get('/ServiceProviderConfig')
    for (let first = 1, total = 1; first <= total;) {
      const page = await get(`/Groups?startIndex=${first}&count=${SYNC_LIMITS.pageSizes[0]}`)
      const { totalResults, Resources } = pageSchema.parse(page)
      total = totalResults
      first += Resources.length
    }
  })
  await agent.close()
  return { ms, requests }
}

/** One sync like `npm run directories -- sync`, of the account in `dataDir`, which is created if missing. */
async function sync(url: string, dataDir: string): Promise<Record<string, number>> {
  const opened = await openStore({ DATA_DIR: dataDir }, new Date())
  const { store, written } = countWrites(opened)
  const accountId = await connect(store, url)
  const others = watchWaits(opened)
  const ms = await timed(async () => {
    const job = await syncNow(
      accountId,
      { signal: new AbortController().signal, allowDeletions: false, progress: () => undefined },
      {
        store,
        clock: () => new Date(),
        log: createLog('silent'),
        environment: { [TOKEN.variable]: TOKEN.value },
        limits: SYNC_LIMITS,
        leaseMs: LEASE_MS,
        syncMs: 600_000,
        note: () => undefined,
      },
    )
    if (job.failure !== null) throw new Error(`The sync failed: ${job.failure}`)
  })
  const waited = await others.longest()
  await store.close()
  return { ms, requests, written: written(), waited }
}

/** Queries the store every few milliseconds, like counted requests, and returns the longest wait. */
function watchWaits(store: Store) {
  let longest = 0
  let asking = Promise.resolve()
  let isAsking = false
  const ask = async () => {
    isAsking = true
    const ms = await timed(() => store.query('SELECT 1 AS one'))
    longest = Math.max(longest, ms)
    isAsking = false
  }
  const timer = setInterval(() => {
    if (!isAsking) asking = ask()
  }, 5)
  return {
    async longest() {
      clearInterval(timer)
      await asking
      return longest
    },
  }
}

async function connect(store: Store, url: string): Promise<string> {
  const known = await findConnectionByName(store, ACCOUNT)
  if (known === undefined) await createKey(store, { account: ACCOUNT, kind: 'management', now: new Date() })
  const token = { token_kind: 'env', token_source: TOKEN.variable } as const
  const connection = { ...NEW_CONNECTION, url, ...token, allow_loopback: 1 }
  await putConnection(store, ACCOUNT, connection, new Date())
  return (await findConnectionByName(store, ACCOUNT))?.account_id ?? ''
}

/** The same store, counting the written rows of groups and members. */
function countWrites(store: Store): { readonly store: Store; readonly written: () => number } {
  let rows = 0
  const counting = (queries: Queries): Queries => ({
    ...queries,
    async query(sql, values) {
      const result = await queries.query(sql, values)
      if (WRITES_GROUPS.test(sql)) {
        const [row] = await queries.query('SELECT changes() AS rows')
        rows += z.object({ rows: z.number() }).parse(row).rows
      }
      return result
    },
  })
  return {
    store: {
      ...store,
      transaction: (work) => store.transaction((queries) => work(counting(queries))),
    },
    written: () => rows,
  }
}

function measure(task: z.output<typeof taskSchema>): Promise<Record<string, number>> {
  return task.kind === 'bare' ? bare(task.url) : sync(task.url, task.dataDir)
}

reportMeasured(await measure(taskSchema.parse(JSON.parse(process.argv[2] ?? ''))))
