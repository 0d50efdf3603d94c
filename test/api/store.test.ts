import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { migrate } from '../../api/migrate.ts'
import { openStore } from '../../api/open-store.ts'
import { openSqlite } from '../../api/store.ts'
import { TemporaryFolders } from '../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

async function openCounter() {
  const store = openSqlite(join(folders.make(), 'store.sqlite'))
  await store.script('CREATE TABLE counter (n INTEGER NOT NULL); INSERT INTO counter VALUES (0)')
  const value = async () => (await store.query('SELECT n FROM counter'))[0]?.['n']
  return { store, value, [Symbol.asyncDispose]: () => store.close() }
}

describe('Store.query', () => {
  it('binds $1, $2 … in any order and more than once', async () => {
    await using counter = await openCounter()
    const rows = await counter.store.query('SELECT $2 AS b, $1 AS a, $2 AS c', ['x', null])
    expect(rows.map((row) => ({ ...row }))).toEqual([{ a: 'x', b: null, c: null }])
  })
})

describe('Store.transaction', () => {
  it('undoes everything when the work throws', async () => {
    await using counter = await openCounter()
    const failing = counter.store.transaction(async (queries) => {
      await queries.query('UPDATE counter SET n = 5')
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await counter.value()).toBe(0)
  })

  it('lets no other query slip in between', async () => {
    await using counter = await openCounter()
    const transaction = counter.store.transaction(async (queries) => {
      const [row] = await queries.query('SELECT n FROM counter')
      await new Promise((resolve) => setImmediate(resolve))
      await queries.query('UPDATE counter SET n = $1', [Number(row?.['n']) + 1])
    })
    const other = counter.store.query('UPDATE counter SET n = n + 10')
    await Promise.all([transaction, other])
    expect(await counter.value()).toBe(11)
  })
})

describe('migrate', () => {
  it('does no harm a second time', async () => {
    const dataDir = folders.make()
    const store = await openStore(dataDir, new Date())
    const schema = () => store.query('SELECT sql FROM sqlite_master ORDER BY name')
    const before = await schema()
    await migrate(store, new Date())
    expect(await schema()).toEqual(before)
    await store.close()
  })

  it('leaves the same tables whoever comes first', async () => {
    const dataDir = folders.make()
    const stores = await Promise.all(Array.from({ length: 5 }, () => openStore(dataDir, new Date())))
    const applied = await stores[0]?.query('SELECT name FROM migrations ORDER BY name')
    expect(applied?.map((row) => row['name'])).toEqual([
      '0001_accounts.sql',
      '0002_quotas.sql',
      '0003_apps.sql',
    ])
    await Promise.all(stores.map((store) => store.close()))
  })
})
