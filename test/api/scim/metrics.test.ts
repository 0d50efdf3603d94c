/** CONTRACT 4.6: the metrics of directory sync. */
import { afterAll, expect, it } from 'vitest'
import { findConnectionByName } from '../../../api/scim/connections.ts'
import { createRunner, requestJob } from '../../../api/scim/job-store.ts'
import { until } from '../../support/api.ts'
import { groupsNamed, startDirectory } from '../../support/scim/faulty-directory.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { startSyncApi } from '../../support/scim/sync.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('the metrics count jobs by outcome, with their times; they name no account', async () => {
  await using directory = await startDirectory(groupsNamed('1', '2', '3'))
  await using service = await startSyncApi({ DATA_DIR: folders.make() })
  const samples = async () => {
    const text = await (await fetch(`${service.origin}/metrics`)).text()
    const lines = text.split('\n').filter((line) => line.startsWith('scim_'))
    return lines.filter((line) => !line.includes('_bucket') && !line.includes('_sum')).toSorted()
  }
  const acme = await service.connect(directory.url)
  await acme.sync()
  await acme.sync()
  await using closed = await startDirectory([], { quirk: () => ({ status: 401, body: {} }) })
  await (await service.connect(closed.url, { account: 'closed' })).sync()

  // The job of a process that died has no time.
  await service.connect(directory.url, { account: 'lost' })
  const accountId = (await findConnectionByName(service.store, 'lost'))?.account_id ?? ''
  const job = await requestJob(service.store, accountId, { now: new Date(0) })
  await createRunner(service.store, () => new Date(), 0).take({ id: job?.id ?? '' })
  // A job is over before it is counted.
  await until(async () => (await samples()).length === 4)
  expect(await samples()).toEqual([
    'scim_job_duration_seconds_count 3',
    'scim_jobs_total{outcome="directory_unauthorized"} 1',
    'scim_jobs_total{outcome="interrupted"} 1',
    'scim_jobs_total{outcome="succeeded"} 2',
  ])
})
