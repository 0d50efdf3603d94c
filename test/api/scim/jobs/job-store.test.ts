/** Each transition of a job, and which process may make it. */
import { afterAll, describe, expect, it } from 'vitest'
import { createKey } from '../../../../api/accounts/keys/key-store.ts'
import { findConnectionByName, putConnection } from '../../../../api/scim/directory/connection-store.ts'
import {
  beat,
  failJob,
  failAbandonedJob,
  findJob,
  lastJob,
  listHeartbeats,
  requestJob,
  takeNextJob,
} from '../../../../api/scim/jobs/job-store.ts'
import { openStore } from '../../../../api/store/open-store.ts'
import type { Store } from '../../../../api/store/store.ts'
import { TestStores } from '../../../support/stores.ts'
import { connectionTo } from '../../../support/scim/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const BEGAN = Date.parse('2026-11-20T12:00:00Z')
const RETENTION_MS = 90 * 86_400_000

/** The time this many milliseconds after the beginning. */
function at(ms: number): Date {
  return new Date(BEGAN + ms)
}

async function connectAccount(store: Store, account: string): Promise<string> {
  await createKey(store, { account, kind: 'management', now: at(0) })
  await putConnection(store, account, connectionTo('http://127.0.0.1:1'), at(0))
  return (await findConnectionByName(store, account))?.accountId ?? ''
}

describe.each(stores.kinds)('jobs in the store, $name', ({ fresh }) => {
  async function open() {
    const store = await openStore(await fresh(), at(0))
    const [acme, other] = [await connectAccount(store, 'acme'), await connectAccount(store, 'other')]
    return { store, acme, other, [Symbol.asyncDispose]: () => store.close() }
  }

  /** A job of the account that failed at that time. */
  async function failed(store: Store, account: string, then: Date): Promise<string> {
    const id = (await requestJob(store, account, then))?.id ?? ''
    await takeNextJob(store, 'runner', then)
    await failJob(store, { id, runner: 'runner' }, { failure: 'internal', now: then })
    return id
  }

  it("can be read for 90 days after their end, and are deleted with the account's next job", async () => {
    await using accounts = await open()
    const { store, acme, other } = accounts
    const [local, remote] = [await failed(store, acme, at(0)), await failed(store, other, at(0))]
    await failed(store, acme, at(RETENTION_MS))
    expect((await findJob(store, acme, local))?.id).toBe(local)
    await requestJob(store, acme, at(RETENTION_MS + 1))
    expect(await findJob(store, acme, local)).toBeUndefined()
    expect((await findJob(store, other, remote))?.id).toBe(remote)
  })

  it('are taken in the order of their requests', async () => {
    await using accounts = await open()
    const { store, acme, other } = accounts
    await requestJob(store, other, at(0))
    await requestJob(store, acme, at(1))
    const taken = [await takeNextJob(store, 'a', at(2)), await takeNextJob(store, 'b', at(2))]
    expect(taken.map((job) => job?.account_id)).toEqual([other, acme])
    expect(await takeNextJob(store, 'c', at(2))).toBeUndefined()
  })

  it('include the newest of an account as its last', async () => {
    await using accounts = await open()
    const { store, acme, other } = accounts
    await failed(store, acme, at(0))
    const newest = await failed(store, acme, at(1))
    await failed(store, other, at(2))
    expect((await lastJob(store, acme))?.id).toBe(newest)
  })

  it('beat and fail only for their runner, and only while they run', async () => {
    await using accounts = await open()
    const { store, acme } = accounts
    const id = (await requestJob(store, acme, at(0)))?.id ?? ''
    await takeNextJob(store, 'runner', at(0))
    const failure = { failure: 'internal', now: at(1) } as const
    expect(await beat(store, { id, runner: 'another' })).toBe(false)
    expect(await failJob(store, { id, runner: 'another' }, failure)).toBeUndefined()
    expect(await beat(store, { id, runner: 'runner' })).toBe(true)
    expect(await listHeartbeats(store)).toMatchObject([{ id, runner: 'runner', heartbeat: 1 }])
    expect(await failJob(store, { id, runner: 'runner' }, failure)).toMatchObject({ failure: 'internal' })

    expect(await listHeartbeats(store)).toEqual([])
    expect(await beat(store, { id, runner: 'runner' })).toBe(false)
    expect(
      await failJob(store, { id, runner: 'runner' }, { ...failure, failure: 'timed_out' }),
    ).toBeUndefined()
    expect(await failAbandonedJob(store, { id, heartbeat: 1 }, at(2))).toBeUndefined()
    expect(await findJob(store, acme, id)).toMatchObject({ failure: 'internal' })
  })
})
