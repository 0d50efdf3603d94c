/** Sync jobs over a store that fails at the worst moments: no job stays open for ever. */
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { createKey } from '../../../../api/accounts/keys/key-store.ts'
import { findConnectionByName, putConnection } from '../../../../api/scim/directory/connection-store.ts'
import { findJob, lastJob } from '../../../../api/scim/jobs/job-store.ts'
import { createSyncJobs } from '../../../../api/scim/jobs/jobs.ts'
import { openStore, type StoreSettings } from '../../../../api/store/open-store.ts'
import type { Store } from '../../../../api/store/store.ts'
import { memoryLog, until } from '../../../support/api.ts'
import { DIRECTORY_TOKEN, gate, groupsNamed, startDirectory } from '../../../support/scim/faulty-directory.ts'
import { TestStores } from '../../../support/stores.ts'
import { connectionTo, QUICK, TOKEN_VARIABLE } from '../../../support/scim/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())
afterEach(() => void vi.useRealTimers())

const HOUR_MS = 3_600_000

interface Faults {
  /** Whether every query fails. */
  away: boolean
  /** Whether the result of this executed statement is lost. */
  loses: (sql: string) => boolean
}

function faulty(store: Store, faults: Faults): Store {
  const unlessAway = () => {
    if (faults.away) throw new Error('The database is away')
  }
  return {
    ...store,
    async query(sql, values) {
      unlessAway()
      const rows = await store.query(sql, values)
      if (faults.loses(sql)) throw new Error('Connection terminated unexpectedly')
      return rows
    },
    async transaction(work) {
      unlessAway()
      return await store.transaction(work)
    },
    async longTransaction(work) {
      unlessAway()
      return await store.longTransaction(work)
    },
  }
}

/** The jobs of a process, over a store that fails as `faults` says; account `acme` has the directory. */
async function startJobs(settings: StoreSettings, url: string, faults: Faults) {
  const real = await openStore(settings, new Date())
  await createKey(real, { account: 'acme', kind: 'management', now: new Date() })
  await putConnection(real, 'acme', connectionTo(url), new Date())
  const accountId = (await findConnectionByName(real, 'acme'))?.accountId ?? ''
  const { log, messages } = memoryLog()
  const dependencies = {
    ...QUICK,
    store: faulty(real, faults),
    clock: () => new Date(),
    log,
    environment: { [TOKEN_VARIABLE]: DIRECTORY_TOKEN },
    // Only the process's own knowledge may end a job here: jobs of dead processes stay open.
    heartbeat: { beatMs: 20, missedBeats: Infinity },
    syncMs: HOUR_MS,
  }
  const jobs = createSyncJobs(dependencies, { concurrent: 1 })
  return {
    jobs,
    messages,
    request: async () => (await jobs.request(accountId))?.id ?? '',
    find: (id: string) => findJob(real, accountId, id),
    last: () => lastJob(real, accountId),
    ended: (id: string) =>
      until(async () => {
        const job = await findJob(real, accountId, id)
        return job?.finished_at !== null && job
      }),
    async [Symbol.asyncDispose]() {
      await jobs.close()
      await real.close()
    },
  }
}

const COULD_NOT_LOOK = 'sync jobs could not be checked'

function isLooking(sql: string): boolean {
  return sql.startsWith('SELECT id, runner, heartbeat')
}

function isTaking(sql: string): boolean {
  return sql.includes("SET status = 'running'")
}

describe.each(stores.kinds)('a sync job with a failing store, $name', ({ fresh }) => {
  it('goes on if only its heartbeat could not be written', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    const faults: Faults = { away: false, loses: () => false }
    await using service = await startJobs(await fresh(), directory.url, faults)
    service.jobs.begin()
    const id = await service.request()
    await until(() => waiting() > 0)
    faults.away = true
    await until(() => service.messages().some(({ msg }) => msg === 'heartbeat of a sync failed'))
    faults.away = false
    open()
    expect(await service.ended(id)).toMatchObject({ status: 'succeeded' })
  })

  it('has its end recorded once the store is back, and a new one can begin', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    const faults: Faults = { away: false, loses: () => false }
    await using service = await startJobs(await fresh(), directory.url, faults)
    service.jobs.begin()
    const id = await service.request()
    await until(() => waiting() > 0)
    faults.away = true
    open()
    await until(() => service.messages().some(({ msg }) => String(msg).includes('could not be recorded')))
    expect((await service.find(id))?.status).toBe('running')
    faults.away = false
    // The cause of the end, not only the end.
    expect(await service.ended(id)).toMatchObject({ status: 'failed', failure: 'internal' })
    expect(await service.ended(await service.request())).toMatchObject({ status: 'succeeded' })
  })

  it('has its end recorded if the service stops before its next look', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    const settings = await fresh()
    const faults: Faults = { away: false, loses: () => false }
    let id = ''
    {
      await using service = await startJobs(settings, directory.url, faults)
      service.jobs.begin()
      id = await service.request()
      await until(() => waiting() > 0)
      faults.away = true
      open()
      await until(() => service.messages().some(({ msg }) => String(msg).includes('could not be recorded')))
      faults.away = false
    }
    await using later = await startJobs(settings, directory.url, faults)
    expect(await later.find(id)).toMatchObject({ status: 'failed', failure: 'internal' })
  })

  it('lets the service stop if the store stays unavailable, and stays open for another process', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    const faults: Faults = { away: false, loses: () => false }
    await using service = await startJobs(await fresh(), directory.url, faults)
    service.jobs.begin()
    const id = await service.request()
    await until(() => waiting() > 0)
    faults.away = true
    open()
    await until(() => service.messages().some(({ msg }) => String(msg).includes('could not be recorded')))
    await service.jobs.close()
    expect(await service.find(id)).toMatchObject({ status: 'running' })
  })

  it('is not checked again if its end was recorded before the service stops', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1'), { quirk })
    let looks = 0
    const faults: Faults = {
      away: false,
      loses(sql) {
        if (isLooking(sql)) looks += 1
        return false
      },
    }
    await using service = await startJobs(await fresh(), directory.url, faults)
    service.jobs.begin()
    const id = await service.request()
    await until(() => waiting() > 0)
    faults.away = true
    open()
    const failedLook = ({ msg }: Readonly<Record<string, unknown>>) => msg === COULD_NOT_LOOK
    await until(() => service.messages().some(failedLook))
    faults.away = false
    vi.advanceTimersByTime(20)
    await service.ended(id)
    const before = looks
    await service.jobs.close()
    expect(looks).toBe(before)
  })

  it('is interrupted if the result of the statement that took it was lost', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const faults: Faults = { away: false, loses: isTaking }
    await using service = await startJobs(await fresh(), directory.url, faults)
    const id = await service.request()
    service.jobs.begin()
    await until(() => service.messages().some(({ msg }) => msg === COULD_NOT_LOOK))
    faults.loses = () => false
    expect(await service.ended(id)).toMatchObject({ status: 'failed', failure: 'interrupted' })
    expect(directory.asked).toEqual([])
    expect(await service.ended(await service.request())).toMatchObject({ status: 'succeeded' })
  })
})
