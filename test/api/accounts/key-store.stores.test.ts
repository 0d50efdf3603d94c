/** CONTRACT 2: keys are created, listed and revoked, on both stores. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeKey } from '../../../api/accounts/credentials.ts'
import {
  createFirstKey,
  createKey,
  createKeyFinder,
  listKeys,
  revokeKey,
} from '../../../api/accounts/key-store.ts'
import { openStore } from '../../../api/store/open-store.ts'
import type { Store } from '../../../api/store/store.ts'
import { TestStores } from '../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const now = new Date('2026-11-20T12:00:00Z')

describe.each(stores.kinds)('on $name', ({ fresh, name }) => {
  let store: Store

  beforeAll(async () => {
    store = await openStore(await fresh(), now)
  })

  afterAll(() => store.close())

  describe('createKey', () => {
    it('stores a hash and four characters of the key, never the key', async () => {
      const key = await createKey(store, { account: 'acme', kind: 'management', now })
      const rows = await store.query('SELECT * FROM api_keys')
      const dump = JSON.stringify(rows)
      expect(dump).not.toContain(key)
      expect(dump).not.toContain(key.slice(-5))
      expect(dump).toContain(key.slice(-4))
    })

    it('finds the account of a name again', async () => {
      await createKey(store, { account: 'twice', kind: 'inference', now })
      await createKey(store, { account: 'twice', kind: 'management', now })
      const accounts = (await listKeys(store)).filter((key) => key.account === 'twice')
      expect(accounts).toHaveLength(2)
      expect(new Set(accounts.map((key) => key.account_id)).size).toBe(1)
    })
  })

  describe('createKeyFinder', () => {
    it('finds a stored key by the secret', async () => {
      const key = await createKey(store, { account: 'found', kind: 'inference', now })
      expect(await createKeyFinder(store)(key)).toMatchObject({
        account: 'found',
        kind: 'inference',
        created_at: now.toISOString(),
        revoked_at: null,
      })
      expect(await createKeyFinder(store)(makeKey('inference'))).toBeUndefined()
    })

    it.runIf(name === 'SQLite')('looks a key up through the unique index', async () => {
      const plan = await store.query('EXPLAIN QUERY PLAN SELECT id FROM api_keys WHERE key_hash = $1', ['x'])
      expect(JSON.stringify(plan)).toMatch(/SEARCH api_keys USING INDEX \S+ \(key_hash=\?\)/)
    })
  })

  describe('revokeKey', () => {
    it('keeps the time of the first revocation', async () => {
      const key = await createKey(store, { account: 'revoked', kind: 'inference', now })
      const id = (await createKeyFinder(store)(key))?.id ?? ''
      expect(await revokeKey(store, id, now)).toBe(true)
      expect(await revokeKey(store, id, new Date('2026-12-01T00:00:00Z'))).toBe(true)
      expect((await createKeyFinder(store)(key))?.revoked_at).toBe(now.toISOString())
      expect(await revokeKey(store, 'nobody', now)).toBe(false)
    })
  })

  describe('createFirstKey', () => {
    it('creates one first key, and none later', async () => {
      const empty = await fresh()
      const wanted = { account: 'default', kind: 'inference', now: new Date() } as const
      const opened = await Promise.all([openStore(empty, wanted.now), openStore(empty, wanted.now)])
      const made = await Promise.all(opened.map((each) => createFirstKey(each, wanted)))
      expect(made.filter((key) => key !== undefined)).toHaveLength(1)
      await Promise.all(opened.map((each) => each.close()))
    })
  })
})
