/** CONTRACT 5: the requests of an account's administrators. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { envelopeSchema } from '../../support/api.ts'
import { groupsNamed, manyGroups, startDirectory } from '../../support/scim/faulty-directory.ts'
import { TestStores } from '../../support/stores.ts'
import { startSyncApi } from '../../support/scim/sync.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const PATHS = [
  ['POST', '/scim/sync-jobs'],
  ['GET', `/scim/sync-jobs/${UNKNOWN}`],
  ['GET', `/scim/sync-jobs/${UNKNOWN}/changes`],
  ['GET', '/scim/groups'],
  ['GET', `/scim/groups/${UNKNOWN}`],
  ['GET', `/scim/groups/${UNKNOWN}/members`],
] as const

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

  async function fault(path: string, key?: string, init?: RequestInit) {
    const response = await service.get(path, key, init)
    return { status: response.status, envelope: envelopeSchema.parse(await response.json()) }
  }

  describe('every path of directory sync', () => {
    it.each(PATHS)('%s %s needs a management key', async (method, path) => {
      const inference = await service.makeKey('inference', 'acme')
      expect((await fault(path, undefined, { method })).status).toBe(401)
      expect((await fault(path, inference, { method })).status).toBe(401)
    })
  })

  describe('POST /scim/sync-jobs', () => {
    it('is 404 for an account without a directory, and the message says what is missing', async () => {
      const key = await service.makeKey('management', 'nobody')
      const { status, envelope } = await fault('/scim/sync-jobs', key, { method: 'POST' })
      expect(status).toBe(404)
      expect(envelope.error.message).toContain('No directory is configured')
    })

    it.each([
      ['nothing', {}],
      ['an empty object', { body: '{}', headers: { 'Content-Type': 'application/json' } }],
      ['JSON that is none', { body: '{', headers: { 'Content-Type': 'application/json' } }],
      ['a form', { body: 'a=b', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }],
    ] satisfies [string, RequestInit][])('accepts the body %s', async (_name, init) => {
      const response = await service.get('/scim/sync-jobs', acme.key, { method: 'POST', ...init })
      expect(response.status).toBe(202)
      await acme.end(response.headers.get('Location')?.split('/').at(-1) ?? '')
    })
  })

  describe('GET /scim/sync-jobs/{id}', () => {
    it.each([UNKNOWN, 'x', '%00', "'; DROP TABLE scim_sync_jobs; --"])('is 404 for %s', async (id) => {
      const { status, envelope } = await fault(`/scim/sync-jobs/${id}`, acme.key)
      expect([status, envelope.error.message]).toEqual([404, 'No such sync job'])
    })

    it('accepts the id in capitals', async () => {
      const { id } = await acme.sync()
      const response = await service.get(`/scim/sync-jobs/${id.toUpperCase()}`, acme.key)
      expect([response.status, await response.json()]).toMatchObject([200, { data: { id } }])
    })

    it('is 404 for the job of another account, which can read its own', async () => {
      const other = await service.connect(directory.url, { account: 'other' })
      const { id } = await other.sync()
      expect((await fault(`/scim/sync-jobs/${id}`, acme.key)).status).toBe(404)
      expect((await other.job(id)).status).toBe('succeeded')
    })
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

    it('shows an account only its own groups', async () => {
      const key = await service.makeKey('management', 'stranger')
      const response = await service.get('/scim/groups', key)
      expect(await response.json()).toEqual({ data: [], total_count: 0 })
      const [group] = (await acme.groups()).data
      expect((await fault(`/scim/groups/${group?.id}/members`, key)).status).toBe(404)
    })

    it.each([
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['limit=1.5', 'limit'],
      ['offset=-1', 'offset'],
      ['offset=', 'offset'],
      ['offset=99999999999999999999', 'offset'],
      ['limit=1&limit=2', 'limit'],
      ['count=5', 'count'],
    ])('is 400 for ?%s and names the parameter', async (query, name) => {
      for (const path of ['/scim/groups', `/scim/groups/${UNKNOWN}/members`]) {
        const { status, envelope } = await fault(`${path}?${query}`, acme.key)
        expect(status).toBe(400)
        expect(envelope.error.message).toContain(`Parameter "${name}"`)
      }
    })
  })

  describe('GET /scim/groups/{id}', () => {
    it('returns one group of the list', async () => {
      const [group] = (await acme.groups()).data
      const response = await service.get(`/scim/groups/${group?.id}`, acme.key)
      expect([response.status, await response.json()]).toEqual([200, { data: group }])
      expect(group?.member_count).toBe(1)
    })

    it('is 404 for the group of another account', async () => {
      const [group] = (await acme.groups()).data
      const key = await service.makeKey('management', 'stranger')
      expect((await fault(`/scim/groups/${group?.id}`, key)).status).toBe(404)
    })
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
      expect(await read('?offset=119')).toEqual({
        data: [{ id: 'user-119', type: 'User', display_name: 'User 119' }],
        total_count: 120,
      })
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

    it.each([UNKNOWN, 'x', '%00'])('is 404 for %s', async (id) => {
      for (const path of [`/scim/groups/${id}/members`, `/scim/groups/${id}`]) {
        const { status, envelope } = await fault(path, acme.key)
        expect([status, envelope.error.message]).toEqual([404, 'No such group'])
      }
    })
  })
})
