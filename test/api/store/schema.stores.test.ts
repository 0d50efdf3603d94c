/** CONTRACT 10: migrations of the store. */
import { readFileSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { openStore } from '../../../api/store/open-store.ts'
import type { Store } from '../../../api/store/store.ts'
import { VERSION } from '../../../pipeline/contract/version.ts'
import { runScript, stores, type StoreKind } from '../../support/stores.ts'

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

async function names(store: Store, sql: string): Promise<string[]> {
  return (await store.query(sql)).map((row) => String(row['name'])).toSorted()
}
const applied = (store: Store) => names(store, 'SELECT name FROM migrations')

describe.each(stores.kinds)('openStore on $name', ({ fresh, name }) => {
  it('applies each migration once, also for processes that start together', async () => {
    const settings = await fresh()
    const opened = await Promise.all(Array.from({ length: 5 }, () => openStore(settings, new Date())))
    for (const store of [...opened, await openStore(settings, new Date())]) {
      expect(await applied(store)).toEqual(files)
      await store.close()
    }
  })

  it('brings a store of version 1.0.0 up to date, with its accounts and quotas', async () => {
    const settings = await fresh()
    const old = await openStore(settings, new Date())
    const tables = ['scim_members', 'scim_groups', 'scim_member_lists', 'scim_sync_jobs', 'scim_connections']
    const all = [...tables, 'quotas', 'api_keys', 'accounts', 'migrations']
    const before = await names(old, COLUMNS[name])
    expect(before).toContain('api_keys.key_hash')
    const former = `
      ${all.map((table) => `DROP TABLE ${table};`).join('\n')}
      ${readFileSync(new URL('0006_tables.sql', FOLDER), 'utf8')};
      CREATE TABLE apps (app_id BIGINT PRIMARY KEY);
      CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL);
      INSERT INTO migrations VALUES ('0005_app_ids.sql', ''), ('0006_scim_details.sql', '');
      INSERT INTO accounts VALUES ('a', 'Account', '');
      INSERT INTO quotas VALUES ('per-day', 'a', '2026-11-21T00:00:00.000Z', 7)`
    await runScript(old, former)
    await old.close()
    const store = await openStore(settings, new Date())
    expect(await names(store, COLUMNS[name])).toEqual(before)
    const [row] = await store.query('SELECT name, used FROM accounts JOIN quotas ON subject = id')
    expect({ ...row }).toEqual({ name: 'Account', used: 7 })
    await store.close()
  })

  it('refuses a store that a newer version has migrated, and names both', async () => {
    const settings = await fresh()
    const store = await openStore(settings, new Date())
    await store.query("INSERT INTO migrations VALUES ('0099_later.sql', '')")
    await store.close()
    await expect(openStore(settings, new Date())).rejects.toThrow(
      new RegExp(`cannot be used: .*0099_later\\.sql.*version ${VERSION} .*${files.at(-1)}`),
    )
  })

  if (name === 'PostgreSQL')
    it('makes the same columns as on SQLite', async () => {
      const kinds = [stores.sqlite, { fresh, name }]
      const [expected, others] = await Promise.all(
        kinds.map(async (kind) => {
          const store = await openStore(await kind.fresh(), new Date())
          const found = await names(store, COLUMNS[kind.name])
          await store.close()
          return found
        }),
      )
      expect(others).toEqual(expected)
    })
})
