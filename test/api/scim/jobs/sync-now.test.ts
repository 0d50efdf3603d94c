import { afterAll, describe, expect, it } from 'vitest'
import { createKey } from '../../../../api/accounts/keys/key-store.ts'
import { openStore, type StoreSettings } from '../../../../api/store/open-store.ts'
import { findConnectionByName, putConnection } from '../../../../api/scim/directory/connection-store.ts'
import { SyncFailure } from '../../../../api/scim/failures.ts'
import { requestJob, showJob, takeNextJob } from '../../../../api/scim/jobs/job-store.ts'
import { groupsNamed, startDirectory } from '../../../support/scim/faulty-directory.ts'
import { TestStores } from '../../../support/stores.ts'
import { connectionTo, syncByCommand } from '../../../support/scim/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

/** An account with a directory of one group, and a sync of it in this process. */
async function connectedAccount(settings: StoreSettings) {
  const directory = await startDirectory(groupsNamed('1'))
  const store = await openStore(settings, new Date())
  await createKey(store, { account: 'acme', kind: 'management', now: new Date() })
  await putConnection(store, 'acme', connectionTo(directory.url), new Date())
  const accountId = (await findConnectionByName(store, 'acme'))?.accountId ?? ''
  const notes: string[] = []
  const note = (line: string) => void notes.push(line)
  const sync = (options: { signal?: AbortSignal } = {}) =>
    syncByCommand(store, accountId, { note, ...options })
  return {
    store,
    accountId,
    notes,
    sync,
    async [Symbol.asyncDispose]() {
      await store.close()
      await directory[Symbol.asyncDispose]()
    },
  }
}

describe.each(stores.kinds)('syncNow on $name', ({ fresh }) => {
  it('runs a queued job', async () => {
    await using account = await connectedAccount(await fresh())
    const queued = await requestJob(account.store, account.accountId, new Date())
    const job = await account.sync()
    expect(showJob(job)).toMatchObject({ id: queued?.id, status: 'succeeded', synced_groups: 1 })
    expect(account.notes).toEqual([])
  })

  it('waits for the job of another process, and ends the job of a dead one', async () => {
    await using account = await connectedAccount(await fresh())
    await requestJob(account.store, account.accountId, new Date())
    const lost = await takeNextJob(account.store, 'a process that is gone', new Date())
    const job = await account.sync()
    expect(account.notes).toEqual([`Job ${lost?.id} is running in another process; waiting for its end.`])
    expect(job.id).not.toBe(lost?.id)
    expect(job.status).toBe('succeeded')
  })

  it('starts nothing once it is interrupted', async () => {
    await using account = await connectedAccount(await fresh())
    const reason = new SyncFailure('interrupted', 'stopped')
    await expect(account.sync({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(await account.store.query('SELECT 1 AS x FROM scim_sync_jobs')).toEqual([])
  })
})
