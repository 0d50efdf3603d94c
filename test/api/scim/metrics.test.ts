/** CONTRACT 4.6: the metrics of directory sync. */
import { afterAll, describe, expect, it } from 'vitest'
import { findConnectionByName } from '../../../api/scim/connections.ts'
import { requestJob, takeNextJob } from '../../../api/scim/job-store.ts'
import { until } from '../../support/api.ts'
import { openStore } from '../../../api/store/open-store.ts'
import {
  DIRECTORY_TOKEN,
  groupsNamed,
  startDirectory,
  type Quirk,
} from '../../support/scim/faulty-directory.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { startSyncApi } from '../../support/scim/sync.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

async function startService(dataDir = folders.make()) {
  const service = await startSyncApi({ DATA_DIR: dataDir })
  const samples = async (name = '') => {
    const text = await (await fetch(`${service.origin}/metrics`)).text()
    const lines = text.split('\n').filter((line) => line.startsWith(`scim_${name}`))
    return lines.filter((line) => !line.includes('_bucket') && !line.includes('_sum')).toSorted()
  }
  return { ...service, samples }
}

/** Answers the first requests for the list with these statuses, then leaves the rest to the directory. */
function failing(...statuses: readonly number[]): Quirk {
  return ({ path, before }) => {
    const status = path === '/Groups' ? statuses[before] : undefined
    return status === undefined ? undefined : { status, body: {} }
  }
}

describe('the metrics of directory sync', () => {
  it('count jobs, changed groups and requests', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2', '3'))
    await using service = await startService()
    const acme = await service.connect(directory.url)
    await acme.sync()
    directory.groups.splice(1, 2, { id: '2', displayName: 'New name' })
    await acme.sync()
    // A job is over before it is counted.
    await until(async () =>
      (await service.samples('jobs')).includes('scim_jobs_total{outcome="succeeded"} 2'),
    )
    expect(await service.samples()).toEqual([
      'scim_groups_changed_total{change="deleted"} 1',
      'scim_groups_changed_total{change="written"} 4',
      'scim_job_duration_seconds_count 2',
      'scim_jobs_total{outcome="succeeded"} 2',
    ])
  })

  it('have the causes of failed jobs and requests', async () => {
    await using service = await startService()
    await using flaky = await startDirectory(groupsNamed('1'), { quirk: failing(500, 429) })
    await (await service.connect(flaky.url, { account: 'flaky' })).sync()
    await using closed = await startDirectory([], { quirk: () => ({ status: 401, body: {} }) })
    await (await service.connect(closed.url, { account: 'closed' })).sync()
    await (await service.connect(closed.url, { account: 'untold', token_source: 'ANOTHER_VARIABLE' })).sync()
    await until(async () => (await service.samples('jobs')).length === 3)
    expect(await service.samples('jobs')).toEqual([
      'scim_jobs_total{outcome="directory_unauthorized"} 1',
      'scim_jobs_total{outcome="succeeded"} 1',
      'scim_jobs_total{outcome="token_unavailable"} 1',
    ])
  })

  it('count a job of a dead process without a time', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const dataDir = folders.make()
    {
      await using service = await startService(dataDir)
      await service.connect(directory.url)
    }
    const store = await openStore({ DATA_DIR: dataDir }, new Date())
    const accountId = (await findConnectionByName(store, 'acme'))?.account_id ?? ''
    await requestJob(store, accountId, { now: new Date() })
    const lost = await takeNextJob(store, 'a process that is gone', { now: new Date(), leaseMs: 0 })
    await store.close()
    await using service = await startService(dataDir)
    const acme = await service.connect(directory.url)
    await acme.end(lost?.id ?? '')
    await until(async () => (await service.samples('jobs')).length === 1)
    expect(await service.samples('job')).toEqual([
      'scim_job_duration_seconds_count 0',
      'scim_jobs_total{outcome="interrupted"} 1',
    ])
  })

  it('name neither accounts nor directories', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    await using service = await startService()
    await (await service.connect(directory.url)).sync()
    const lines = (await service.samples()).join('\n')
    for (const secret of ['acme', '127.0.0.1', 'Group 1', DIRECTORY_TOKEN])
      expect(lines).not.toContain(secret)
  })
})
