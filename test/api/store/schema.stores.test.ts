import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { openStore } from '../../../api/store/open-store.ts'
import { appliedMigrations, updateSchema } from '../../../api/store/schema.ts'
import type { Store } from '../../../api/store/store.ts'
import { REPOSITORY } from '../../support/processes.ts'
import { asEnvironment, TestStores, type StoreKind } from '../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const files = readdirSync(join(REPOSITORY, 'api', 'store', 'migrations')).toSorted()

const COLUMNS = {
  SQLite: `
    SELECT t.name || '.' || c.name AS name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table'`,
  PostgreSQL: `
    SELECT table_name || '.' || column_name AS name FROM information_schema.columns
    WHERE table_schema = current_schema()`,
} as const satisfies Readonly<Record<StoreKind['name'], string>>

async function columns(store: Store, kind: StoreKind['name']): Promise<string[]> {
  return (await store.query(COLUMNS[kind])).map((row) => String(row['name'])).toSorted()
}

describe.each(stores.kinds)('updateSchema on $name', ({ fresh, name }) => {
  it('changes nothing a second time', async () => {
    const store = await openStore(await fresh(), new Date())
    const before = await columns(store, name)
    expect(before).toContain('api_keys.key_hash')
    await updateSchema(store, new Date())
    expect(await columns(store, name)).toEqual(before)
    expect(await appliedMigrations(store)).toEqual(files)
    await store.close()
  })

  it('creates the same tables whichever process is first', async () => {
    const settings = await fresh()
    const opened = await Promise.all(Array.from({ length: 5 }, () => openStore(settings, new Date())))
    for (const store of opened) expect(await appliedMigrations(store)).toEqual(files)
    await Promise.all(opened.map((store) => store.close()))
  })

  it('is run safely by several processes at once', async () => {
    const settings = await fresh()
    const program = `
      const { openStore } = await import('./api/store/open-store.ts')
      const { readSettings } = await import('./api/config.ts')
      await (await openStore(readSettings(process.env), new Date())).close()`
    const options = { cwd: REPOSITORY, env: { ...process.env, ...asEnvironment(settings) } }
    const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], options)
    await Promise.all(Array.from({ length: 4 }, run))
    const store = await openStore(settings, new Date())
    expect(await appliedMigrations(store)).toEqual(files)
    await store.close()
  })

  if (name === 'PostgreSQL')
    it('makes the same columns as on SQLite', async () => {
      const kinds = [stores.sqlite, { fresh, name }]
      const [expected, others] = await Promise.all(
        kinds.map(async (kind) => {
          const store = await openStore(await kind.fresh(), new Date())
          const found = await columns(store, kind.name)
          await store.close()
          return found
        }),
      )
      expect(others).toEqual(expected)
    })
})
