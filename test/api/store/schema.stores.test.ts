/** CONTRACT 10: migrations of the store. */
import { execFile } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { openStore } from '../../../api/store/open-store.ts'
import { appliedMigrations, updateSchema } from '../../../api/store/schema.ts'
import type { Store } from '../../../api/store/store.ts'
import { REPOSITORY } from '../../support/processes.ts'
import { asEnvironment, TestStores, type StoreKind } from '../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const FOLDER = new URL('../../../api/store/migrations/', import.meta.url)
const files = readdirSync(FOLDER).toSorted()

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

  it('brings a store of version 1.0.0 up to date, with its accounts and quotas', async () => {
    const settings = await fresh()
    const store = await openStore(settings, new Date())
    const tables = ['scim_members', 'scim_groups', 'scim_member_lists', 'scim_sync_jobs', 'scim_connections']
    const all = [...tables, 'quotas', 'api_keys', 'accounts', 'migrations']
    const before = await columns(store, name)
    await store.script(all.map((table) => `DROP TABLE ${table};`).join(' '))
    await store.script(readFileSync(new URL('0006_tables.sql', FOLDER), 'utf8'))
    await store.script(`
      CREATE TABLE apps (app_id BIGINT PRIMARY KEY);
      CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL);
      INSERT INTO migrations VALUES ('0005_app_ids.sql', ''), ('0006_scim_details.sql', '');
      INSERT INTO accounts VALUES ('a', 'Account', '');
      INSERT INTO quotas VALUES ('per-day', 'a', '2026-11-21T00:00:00.000Z', 7)`)
    await updateSchema(store, new Date())
    expect(await columns(store, name)).toEqual(before)
    const [row] = await store.query('SELECT name, used FROM accounts JOIN quotas ON subject = id')
    expect({ ...row }).toEqual({ name: 'Account', used: 7 })
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
