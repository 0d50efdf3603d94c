/** CONTRACT 5: several API processes run one job per account. */
import { afterAll, describe, expect, it, vi } from 'vitest'
import { createKey } from '../../../../../api/accounts/key-store.ts'
import { openStore, type StoreSettings } from '../../../../../api/store/open-store.ts'
import { BASE_PATH } from '../../../../../api/paths.ts'
import { putConnection } from '../../../../../api/scim/connections.ts'
import { startServer, until } from '../../../../support/api.ts'
import {
  DIRECTORY_TOKEN,
  gate,
  groupsNamed,
  startDirectory,
} from '../../../../support/scim/faulty-directory.ts'
import { asEnvironment, TestStores } from '../../../../support/stores.ts'
import { administratorOf, connectionTo, TOKEN_VARIABLE } from '../../../../support/scim/sync.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const stores = new TestStores()
afterAll(() => stores.removeAll())

const ACCOUNTS = ['a', 'b', 'c', 'd', 'e']

/** A store in which each account has the directory; resolves to their keys. */
async function connectAll(settings: StoreSettings, url: string): Promise<readonly string[]> {
  const store = await openStore(settings, new Date())
  const keys: string[] = []
  for (const account of ACCOUNTS) {
    keys.push(await createKey(store, { account, kind: 'management', now: new Date() }))
    await putConnection(store, account, connectionTo(url), new Date())
  }
  await store.close()
  return keys
}

/** The API in its own process, once it listens. */
async function startSync(settings: StoreSettings) {
  const environment = { ...asEnvironment(settings), [TOKEN_VARIABLE]: DIRECTORY_TOKEN }
  const { origin, child, ended } = await startServer(environment)
  return {
    administrator: (key: string) =>
      administratorOf(
        {
          get: (path, _key, init) =>
            fetch(`${origin}${BASE_PATH}${path}`, { ...init, headers: { Authorization: `Bearer ${key}` } }),
        },
        key,
      ),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      expect(await ended).toMatchObject({ code: 0 })
    },
  }
}

describe.each(stores.all)('two API processes on one store, $name', ({ fresh }) => {
  it('run one job per account between them, and both show it', async () => {
    const { quirk, open, waiting } = gate()
    await using directory = await startDirectory(groupsNamed('1', '2'), { quirk })
    const settings = await fresh()
    const keys = await connectAll(settings, directory.url)
    await using first = await startSync(settings)
    await using second = await startSync(settings)
    const accounts = keys.map((key) => [first.administrator(key), second.administrator(key)] as const)

    const idsOf = async ([one, other]: (typeof accounts)[number]) => {
      const posts = await Promise.all([one, other, one, other].map((each) => each.post()))
      return [...new Set(posts.map(({ job }) => job.id))]
    }
    const ids = await Promise.all(accounts.map(idsOf))
    expect(ids.map(({ length }) => length)).toEqual(ACCOUNTS.map(() => 1))
    await until(() => waiting() === ACCOUNTS.length)
    // All are running, so they are returned again.
    expect(await Promise.all(accounts.map(idsOf))).toEqual(ids)
    const started = directory.asked.filter(({ path }) => path === '/ServiceProviderConfig')
    expect(started).toHaveLength(ACCOUNTS.length)

    open()
    for (const [index, [one, other]] of accounts.entries()) {
      const end = await other.end(ids[index]?.[0] ?? '')
      expect(end).toMatchObject({ status: 'succeeded', synced_groups: 2 })
      expect(await one.job(end.id)).toEqual(end)
      expect(await one.all()).toEqual({ 'Group 1': ['user-of-1'], 'Group 2': ['user-of-2'] })
      expect(await one.groups()).toEqual(await other.groups())
    }
  })
})
