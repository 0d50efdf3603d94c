/** CONTRACT 5: the requests of an account's administrators, by hand and by the official client. */
import { OpenRouter } from '@openrouter/sdk'
import { NotFoundResponseError, UnauthorizedResponseError } from '@openrouter/sdk/models/errors'
import { beforeAll, describe, expect, it } from 'vitest'
import { envelopeSchema, until } from '../../support/api.ts'
import { groupsNamed, manyGroups, startDirectory } from '../../support/scim/faulty-directory.ts'
import { stores } from '../../support/stores.ts'
import { startSyncApi } from '../../support/scim/sync.ts'

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const LISTS = ['/scim/sync-jobs', '/scim/groups', `/scim/groups/${UNKNOWN}/members`]
const OF_JOB = ['/scim/sync-jobs/ID', '/scim/sync-jobs/ID/changes']
const OF_GROUP = ['/scim/groups/ID', '/scim/groups/ID/members']

const typed = (type: string) => ({ body: '{', headers: { 'Content-Type': type } })

describe.each(stores.kinds)('on $name', ({ fresh }) => {
  let directory: Awaited<ReturnType<typeof startDirectory>>
  let service: Awaited<ReturnType<typeof startSyncApi>>
  let acme: Awaited<ReturnType<typeof service.connect>>

  beforeAll(async () => {
    directory = await startDirectory(manyGroups(120))
    service = await startSyncApi(await fresh())
    acme = await service.connect(directory.url)
    await acme.sync()
  })

  /** The status of an error, and its message. */
  async function fault(path: string, key?: string, init?: RequestInit) {
    const response = await service.get(path, key, init)
    const { error } = envelopeSchema.parse(await response.json())
    return [response.status, error.message] as const
  }

  it.each(['limit=0', 'limit=101', 'limit=1.5', 'offset=-1', 'offset=', 'limit=1&limit=2', 'count=5'])(
    'lists are 400 for ?%s and name the parameter',
    async (query) => {
      const message = expect.stringContaining(`"${query.split('=')[0]}"`)
      for (const path of LISTS) expect(await fault(`${path}?${query}`, acme.key)).toEqual([400, message])
    },
  )

  it.each([UNKNOWN, 'x', '%00', "'; DROP TABLE scim_sync_jobs; --"])('is 404 for the id %s', async (id) => {
    for (const path of OF_JOB)
      expect(await fault(path.replace('ID', id), acme.key)).toEqual([404, 'No such sync job'])
    for (const path of OF_GROUP)
      expect(await fault(path.replace('ID', id), acme.key)).toEqual([404, 'No such group'])
  })

  it('shows an account only its own jobs and groups', async () => {
    const key = await service.makeKey('management', 'stranger')
    expect(await (await service.get('/scim/groups', key)).json()).toEqual({ data: [], total_count: 0 })
    const [group] = (await acme.groups()).data
    const { id } = await acme.sync()
    for (const path of OF_JOB) expect((await fault(path.replace('ID', id), key))[0]).toBe(404)
    for (const path of OF_GROUP) expect((await fault(path.replace('ID', group?.id ?? ''), key))[0]).toBe(404)
  })

  it('POST /scim/sync-jobs is 404 for an account without a directory, and says what is missing', async () => {
    const key = await service.makeKey('management', 'nobody')
    const message = expect.stringContaining('No directory is configured')
    expect(await fault('/scim/sync-jobs', key, { method: 'POST' })).toEqual([404, message])
  })

  it.each([
    ['nothing', {}],
    ['an empty object', { ...typed('application/json'), body: '{}' }],
    ['JSON that is none', typed('application/json')],
    ['a form', typed('application/x-www-form-urlencoded')],
  ] satisfies [string, RequestInit][])('POST /scim/sync-jobs accepts the body %s', async (_name, init) => {
    const response = await service.get('/scim/sync-jobs', acme.key, { method: 'POST', ...init })
    expect(response.status).toBe(202)
    const { id } = await acme.end(response.headers.get('Location')?.split('/').at(-1) ?? '')
    // An id may be in either case.
    expect((await acme.job(id.toUpperCase())).id).toBe(id)
  })

  it('GET /scim/groups pages through all groups, each once, oldest first, 50 at a time by default', async () => {
    directory.groups.push(...groupsNamed('new'))
    await acme.sync()
    const { data, total_count } = await acme.groups('')
    expect([data.length, total_count]).toEqual([50, 121])
    const pages = await Promise.all(
      [0, 50, 100].map(async (offset) => (await acme.groups(`?offset=${offset}&limit=50`)).data),
    )
    const ids = pages.flat().map((group) => group.external_id)
    expect(ids.at(-1)).toBe('new')
    expect(ids.toSorted()).toEqual(directory.groups.map((group) => group.id).toSorted())
    for (const offset of ['121', '9007199254740991'])
      expect((await acme.groups(`?offset=${offset}`)).data).toEqual([])
    const response = await service.get(`/scim/groups/${data[0]?.id}`, acme.key)
    expect([response.status, await response.json()]).toEqual([200, { data: data[0] }])
  })

  it('GET /scim/groups/{id}/members pages through the members; their type may follow from their address', async () => {
    const members = Array.from({ length: 120 }, (_, index) => ({
      value: `user-${String(index).padStart(3, '0')}`,
      ...(index > 0
        ? { $ref: index === 119 ? 'https://a.example/v2/Groups/user-119' : '../Users/user' }
        : { type: 'user' }),
      display: `User ${index}`,
    }))
    await using large = await startDirectory([{ id: 'large', displayName: 'Large', members }])
    const other = await service.connect(large.url, { account: 'large' })
    await other.sync()
    const [group] = (await other.groups()).data
    expect(group?.member_count).toBe(120)
    const read = async (query: string) =>
      await (await service.get(`/scim/groups/${group?.id}/members${query}`, other.key)).json()
    const last = { id: 'user-119', type: 'Group', display_name: 'User 119' }
    expect(await read('?offset=119')).toEqual({ data: [last], total_count: 120 })
    expect(await read('')).toMatchObject({ data: { length: 50, 0: { type: 'User' } } })
  })

  describe('the official client', () => {
    const client = (apiKey: string) =>
      new OpenRouter({ serverURL: service.base, apiKey, retryConfig: { strategy: 'none' } }).scim

    it('starts a job, follows it to its end and pages through the groups', async () => {
      const scim = client(acme.key)
      const { headers, result } = await scim.createSyncJob()
      expect(headers['location']).toEqual([`/api/v1/scim/sync-jobs/${result.data.id}`])
      expect(result.data).toMatchObject({ status: 'queued', syncedGroups: null, errorMessage: null })
      const { data: ended } = await until(async () => {
        const reply = await scim.getSyncJob({ id: result.data.id })
        return reply.data.finishedAt !== null && reply
      })
      expect(ended).toMatchObject({ status: 'succeeded', deletedGroups: 0, errorMessage: null })
      const names: string[] = []
      for await (const page of await scim.listGroups({ limit: 25 })) {
        expect(page.result.totalCount).toBe(ended.syncedGroups)
        names.push(...page.result.data.map((group) => group.displayName))
      }
      expect(names.toSorted()).toEqual(directory.groups.map((group) => group.displayName).toSorted())
    })

    it('turns a 404 and a 401 into their typed errors', async () => {
      const scim = client(await service.makeKey('management', 'nobody'))
      const wrongKind = client(await service.makeKey('inference', 'nobody'))
      await expect(scim.createSyncJob()).rejects.toBeInstanceOf(NotFoundResponseError)
      await expect(scim.getSyncJob({ id: UNKNOWN })).rejects.toBeInstanceOf(NotFoundResponseError)
      await expect(wrongKind.createSyncJob()).rejects.toBeInstanceOf(UnauthorizedResponseError)
    })
  })
})
