/** CONTRACT 5: the requests of an account's administrators. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { envelopeSchema } from '../../support/api.ts'
import { groupsNamed, manyGroups, startDirectory } from '../../support/scim/faulty-directory.ts'
import { TestStores } from '../../support/stores.ts'
import { startSyncApi } from '../../support/scim/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const PATHS = [
  ['POST', '/scim/sync-jobs'],
  ['GET', '/scim/sync-jobs'],
  ['GET', `/scim/sync-jobs/${UNKNOWN}`],
  ['GET', `/scim/sync-jobs/${UNKNOWN}/changes`],
  ['GET', '/scim/groups'],
  ['GET', `/scim/groups/${UNKNOWN}`],
  ['GET', `/scim/groups/${UNKNOWN}/members`],
] as const
const LISTS = ['/scim/sync-jobs', '/scim/groups', `/scim/groups/${UNKNOWN}/members`]
/** Paths with an id. */
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

  afterAll(async () => {
    await service.close()
    await directory[Symbol.asyncDispose]()
  })

  /** The status of an error, and its message. */
  async function fault(path: string, key?: string, init?: RequestInit) {
    const response = await service.get(path, key, init)
    const { error } = envelopeSchema.parse(await response.json())
    return [response.status, error.message] as const
  }

  it.each(PATHS)('%s %s needs a management key', async (method, path) => {
    const inference = await service.makeKey('inference', 'acme')
    for (const key of [undefined, inference]) expect((await fault(path, key, { method }))[0]).toBe(401)
  })

  it.each(['limit=0', 'limit=101', 'limit=1.5', 'offset=-1', 'offset=', 'limit=1&limit=2', 'count=5'])(
    'lists are 400 for ?%s and name the parameter',
    async (query) => {
      for (const path of LISTS) {
        const [status, message] = await fault(`${path}?${query}`, acme.key)
        expect([status, message]).toEqual([400, expect.stringContaining(`"${query.split('=')[0]}"`)])
      }
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

  it('has no decimal among its numbers in the API description, for generated clients', async () => {
    const { paths } = z
      .object({ paths: z.record(z.string(), z.unknown()) })
      .parse(await (await service.get('/openapi.json')).json())
    const ours = Object.entries(paths).filter(([path]) => path.includes('/scim/'))
    expect(ours).toHaveLength(6)
    expect(JSON.stringify(ours)).toContain('"integer"')
    expect(JSON.stringify(ours)).not.toContain('"number"')
  })

  describe('POST /scim/sync-jobs', () => {
    it('is 404 for an account without a directory, and the message says what is missing', async () => {
      const key = await service.makeKey('management', 'nobody')
      const [status, message] = await fault('/scim/sync-jobs', key, { method: 'POST' })
      expect([status, message]).toEqual([404, expect.stringContaining('No directory is configured')])
    })

    it.each([
      ['nothing', {}],
      ['an empty object', { ...typed('application/json'), body: '{}' }],
      ['JSON that is none', typed('application/json')],
      ['a form', typed('application/x-www-form-urlencoded')],
    ] satisfies [string, RequestInit][])('accepts the body %s', async (_name, init) => {
      const response = await service.get('/scim/sync-jobs', acme.key, { method: 'POST', ...init })
      expect(response.status).toBe(202)
      await acme.end(response.headers.get('Location')?.split('/').at(-1) ?? '')
    })
  })

  it('GET /scim/sync-jobs/{id} accepts the id in capitals', async () => {
    const { id } = await acme.sync()
    expect((await acme.job(id.toUpperCase())).id).toBe(id)
  })

  describe('GET /scim/groups', () => {
    it('returns 50 groups by default, and their total', async () => {
      const { data, total_count } = await acme.groups('')
      expect([data.length, total_count]).toEqual([50, 120])
    })

    it('pages through all groups, each once, oldest first', async () => {
      directory.groups.push(...groupsNamed('new'))
      await acme.sync()
      const pages = await Promise.all(
        [0, 50, 100].map(async (offset) => (await acme.groups(`?offset=${offset}&limit=50`)).data),
      )
      const ids = pages.flat().map((group) => group.external_id)
      expect(ids.at(-1)).toBe('new')
      expect(ids.toSorted()).toEqual(directory.groups.map((group) => group.id).toSorted())
      expect((await acme.groups('?offset=121')).data).toEqual([])
      expect((await acme.groups('?offset=9007199254740991')).data).toEqual([])
    })
  })

  it('GET /scim/groups/{id} returns one group of the list', async () => {
    const [group] = (await acme.groups()).data
    const response = await service.get(`/scim/groups/${group?.id}`, acme.key)
    expect([response.status, await response.json()]).toEqual([200, { data: group }])
    expect(group?.member_count).toBe(1)
  })

  describe('GET /scim/groups/{id}/members', () => {
    it('pages through the members', async () => {
      const members = Array.from({ length: 120 }, (_, index) => ({
        value: `user-${String(index).padStart(3, '0')}`,
        type: 'User',
        display: `User ${index}`,
      }))
      directory.groups.push({ id: 'large', displayName: 'Large', members })
      await acme.sync()
      const { data: groups } = await acme.groups('?offset=100')
      const id = groups.find((group) => group.external_id === 'large')?.id
      const read = async (query: string) =>
        await (await service.get(`/scim/groups/${id}/members${query}`, acme.key)).json()
      const last = { id: 'user-119', type: 'User', display_name: 'User 119' }
      expect(await read('?offset=119')).toEqual({ data: [last], total_count: 120 })
      expect(await read('')).toMatchObject({ data: { length: 50 } })
    })

    it('returns no total if the directory supplies no members', async () => {
      await using bare = await startDirectory([{ id: 'untold', displayName: 'Untold' }])
      const other = await service.connect(bare.url, { account: 'bare' })
      await other.sync()
      const [group] = (await other.groups()).data
      expect(group?.member_count).toBeNull()
      expect(await other.members(group?.id ?? '')).toEqual({ data: [], total_count: null })
    })
  })
})
