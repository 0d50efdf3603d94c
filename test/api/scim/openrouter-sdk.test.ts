/** CONTRACT 5: the official client starts and reads sync jobs. */
import { OpenRouter } from '@openrouter/sdk'
import { NotFoundResponseError, UnauthorizedResponseError } from '@openrouter/sdk/models/errors'
import { expect, it } from 'vitest'
import { until } from '../../support/api.ts'
import { manyGroups, startDirectory } from '../../support/scim/faulty-directory.ts'
import { useAccounts } from '../../support/scim/directory-case.ts'

const accounts = useAccounts()
const client = (apiKey: string) =>
  new OpenRouter({ serverURL: accounts.service.base, apiKey, retryConfig: { strategy: 'none' } }).scim

it('the official client starts a job, follows it to its end and pages through the groups', async () => {
  await using directory = await startDirectory(manyGroups(60))
  const scim = client((await accounts.connect(directory.url)).key)
  const { headers, result } = await scim.createSyncJob()
  expect(headers['location']).toEqual([`/api/v1/scim/sync-jobs/${result.data.id}`])
  expect(result.data).toMatchObject({ status: 'queued', syncedGroups: null, errorMessage: null })

  const { data: ended } = await until(async () => {
    const reply = await scim.getSyncJob({ id: result.data.id })
    return reply.data.finishedAt !== null && reply
  })
  const success = { status: 'succeeded', syncedGroups: 60, deletedGroups: 0, errorMessage: null }
  expect(ended).toMatchObject(success)

  const names: string[] = []
  for await (const page of await scim.listGroups({ limit: 25 })) {
    expect(page.result.totalCount).toBe(60)
    names.push(...page.result.data.map((group) => group.displayName))
  }
  expect(names.toSorted()).toEqual(directory.groups.map((group) => group.displayName).toSorted())
})

it('the official client turns a 404 and a 401 into their typed errors', async () => {
  const { makeKey } = accounts.service
  const scim = client(await makeKey('management', 'nobody'))
  const unknown = { id: crypto.randomUUID() }
  await expect(scim.createSyncJob()).rejects.toBeInstanceOf(NotFoundResponseError)
  await expect(scim.getSyncJob(unknown)).rejects.toBeInstanceOf(NotFoundResponseError)
  const wrongKind = client(await makeKey('inference', 'nobody'))
  await expect(wrongKind.createSyncJob()).rejects.toBeInstanceOf(UnauthorizedResponseError)
})
