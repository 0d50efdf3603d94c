/** CONTRACT 5: the official client starts and reads sync jobs. */
import { OpenRouter } from '@openrouter/sdk'
import { NotFoundResponseError, UnauthorizedResponseError } from '@openrouter/sdk/models/errors'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../support/api.ts'
import { manyGroups, startDirectory } from '../../support/scim/faulty-directory.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { startSyncApi } from '../../support/scim/sync.ts'

const folders = new TemporaryFolders()

let directory: Awaited<ReturnType<typeof startDirectory>>
let service: Awaited<ReturnType<typeof startSyncApi>>

beforeAll(async () => {
  directory = await startDirectory(manyGroups(60))
  service = await startSyncApi({ DATA_DIR: folders.make() })
})

afterAll(async () => {
  await service.close()
  await directory[Symbol.asyncDispose]()
  folders.removeAll()
})

function client(apiKey: string) {
  return new OpenRouter({ serverURL: service.base, apiKey, retryConfig: { strategy: 'none' } })
}

async function rejection(request: Promise<unknown>): Promise<unknown> {
  return await request.then(
    () => undefined,
    (reason: unknown) => reason,
  )
}

describe('the official client', () => {
  it('starts a job, follows it to its end and pages through the groups', async () => {
    const acme = await service.connect(directory.url)
    const { scim } = client(acme.key)
    const started = await scim.createSyncJob()
    expect(started.headers['location']).toEqual([`/api/v1/scim/sync-jobs/${started.result.data.id}`])
    expect(started.result.data).toMatchObject({ status: 'queued', syncedGroups: null, errorMessage: null })

    const { data: ended } = await until(async () => {
      const reply = await scim.getSyncJob({ id: started.result.data.id })
      return reply.data.finishedAt !== null && reply
    })
    expect(ended).toMatchObject({
      status: 'succeeded',
      syncedGroups: 60,
      deletedGroups: 0,
      errorMessage: null,
    })

    const names: string[] = []
    for await (const page of await scim.listGroups({ limit: 25 })) {
      expect(page.result.totalCount).toBe(60)
      names.push(...page.result.data.map((group) => group.displayName))
    }
    expect(names.toSorted()).toEqual(directory.groups.map((group) => group.displayName).toSorted())
  })

  it('turns a 404 and a 401 into their typed errors', async () => {
    const { scim } = client(await service.makeKey('management', 'nobody'))
    expect(await rejection(scim.createSyncJob())).toBeInstanceOf(NotFoundResponseError)
    expect(await rejection(scim.getSyncJob({ id: crypto.randomUUID() }))).toBeInstanceOf(
      NotFoundResponseError,
    )
    const wrongKind = client(await service.makeKey('inference', 'nobody')).scim
    expect(await rejection(wrongKind.createSyncJob())).toBeInstanceOf(UnauthorizedResponseError)
  })
})
