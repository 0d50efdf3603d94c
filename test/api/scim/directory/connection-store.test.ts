import { afterAll, describe, expect, it } from 'vitest'
import { createKey } from '../../../../api/accounts/keys/key-store.ts'
import {
  dueConnections,
  findConnectionByName,
  holdConnection,
  listConnections,
  putConnection,
  readConnection,
  type ConnectionWanted,
} from '../../../../api/scim/directory/connection-store.ts'
import { openStore } from '../../../../api/store/open-store.ts'
import { TestStores } from '../../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const BEFORE = new Date('2026-11-20T11:00:00.000Z')
const NOW = new Date('2026-11-20T12:00:00.000Z')

const FORMER: ConnectionWanted = {
  url: new URL('https://a.example/'),
  token: { kind: 'env', source: 'TOKEN' },
  members: 'inline',
  reach: { allowLoopback: true, allowPrivate: false },
  gate: { groups: 5, members: 50, percent: 20 },
  schedule: '0 * * * *',
  nextSyncAt: NOW.toISOString(),
}
const WANTED: ConnectionWanted = {
  url: new URL('https://b.example/scim/'),
  token: { kind: 'file', source: '/run/token' },
  members: 'per_group',
  reach: { allowLoopback: false, allowPrivate: true },
  gate: { groups: 0, members: 7, percent: 100 },
  schedule: null,
  nextSyncAt: null,
}

describe.each(stores.kinds)('connections in the store, $name', ({ fresh }) => {
  async function openWith(...accounts: readonly string[]) {
    const store = await openStore(await fresh(), BEFORE)
    for (const account of accounts) await createKey(store, { account, kind: 'management', now: BEFORE })
    return { store, [Symbol.asyncDispose]: () => store.close() }
  }

  it('are replaced as a whole, and a running sync detects that', async () => {
    await using opened = await openWith('acme')
    const { store } = opened
    await putConnection(store, 'acme', FORMER, BEFORE)
    const former = await findConnectionByName(store, 'acme')
    if (former === undefined) throw new TypeError('No connection was put')
    expect(former).toMatchObject(FORMER)
    expect(await holdConnection(store, former)).toBe(true)
    await putConnection(store, 'acme', WANTED, NOW)
    expect(await findConnectionByName(store, 'acme')).toEqual({
      ...former,
      ...WANTED,
      updatedAt: NOW.toISOString(),
    })
    expect(await holdConnection(store, former)).toBe(false)
  })

  it('are listed by account, and are due from their time on, the longest waiting first', async () => {
    await using opened = await openWith('c', 'a', 'b', 'd')
    const { store } = opened
    const times = { c: BEFORE, a: new Date(NOW.getTime() + 1), b: NOW }
    for (const [account, time] of Object.entries(times)) {
      await putConnection(store, account, { ...FORMER, nextSyncAt: time.toISOString() }, BEFORE)
    }
    await putConnection(store, 'd', WANTED, BEFORE)
    expect((await listConnections(store)).map(({ account }) => account)).toEqual(['a', 'b', 'c', 'd'])
    expect((await dueConnections(store, NOW)).map((row) => readConnection(row).account)).toEqual(['c', 'b'])
  })
})
