/** CONTRACT 10: the tables of the store, their migrations, and the move of SQLite's rows into PostgreSQL. */
import { readFileSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { copyStore } from '../../../api/commands/copy-store.ts'
import { keys } from '../../../api/commands/keys.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import type { Store } from '../../../api/store/store.ts'
import { VERSION } from '../../../pipeline/contract/version.ts'
import { runCommandLine } from '../../support/processes.ts'
import { asEnvironment, runScript, stores, type StoreKind } from '../../support/stores.ts'

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

async function namesIn(store: Store, sql: string): Promise<string[]> {
  return (await store.query(sql)).map((row) => String(row['name'])).toSorted()
}

describe.each(stores.kinds)('openStore on $name', ({ fresh, name }) => {
  it('applies each migration once, also for processes that start together', async () => {
    const settings = await fresh()
    const opened = await Promise.all(Array.from({ length: 5 }, () => openStore(settings)))
    for (const store of [...opened, await openStore(settings)]) {
      expect(await namesIn(store, 'SELECT name FROM migrations')).toEqual(files)
      await store.close()
    }
  })

  it('brings a store of version 1.0.0 up to date, with its accounts and quotas', async () => {
    const settings = await fresh()
    const old = await openStore(settings)
    const tables = ['scim_members', 'scim_groups', 'scim_member_lists', 'scim_sync_jobs', 'scim_connections']
    const all = [...tables, 'quotas', 'api_keys', 'accounts', 'migrations']
    const columns = await namesIn(old, COLUMNS[name])
    expect(columns).toContain('api_keys.key_hash')
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
    await using store = await openStore(settings)
    expect(await namesIn(store, COLUMNS[name])).toEqual(columns)
    const [row] = await store.query('SELECT name, used FROM accounts JOIN quotas ON subject = id')
    expect({ ...row }).toEqual({ name: 'Account', used: 7 })
    await using sqlite = await openStore(await stores.sqlite.fresh())
    expect(columns).toEqual(await namesIn(sqlite, COLUMNS.SQLite))
  })

  it('refuses a store that a newer version has migrated, and names both', async () => {
    const settings = await fresh()
    await using store = await openStore(settings)
    await store.query("INSERT INTO migrations VALUES ('0099_later.sql', '')")
    await expect(openStore(settings)).rejects.toThrow(
      new RegExp(`cannot be used: .*0099_later\\.sql.*version ${VERSION} .*${files.at(-1)}`),
    )
  })
})

const ACCOUNT = `Ärger & "Söhne", it's 100 %`
/** More than fit into one statement. */
const QUOTAS = 1200
const FILL = `
  INSERT INTO quotas (policy, subject, window_ends, used)
  WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${QUOTAS})
  SELECT 'per-day', 'subject ' || n, '2026-11-21T00:00:00.000Z', n FROM numbers;
  INSERT INTO scim_groups (id, account_id, scim_id, display_name, created_at, updated_at, member_list)
  SELECT 'group of ' || id, id, '1', 'Staff', '1', '2', 'list of ' || id FROM accounts;
  INSERT INTO scim_member_lists SELECT member_list, account_id, 'job' FROM scim_groups;
  INSERT INTO scim_members (list_id, member_id) SELECT member_list, 'ann' FROM scim_groups`

const copy = (settings: StoreSettings) => runCommandLine(copyStore, [], asEnvironment(settings))

stores.describeOnce('npm run copy-store', () => {
  it.each([
    ['DATABASE_URL', '', /^DATABASE_URL is not set: /],
    ['service.sqlite, and makes none', 'postgres://127.0.0.1:1/none', /service\.sqlite: nothing is stored/],
  ])('asks for %s', async (_what, DATABASE_URL, message) => {
    const { DATA_DIR } = await stores.sqlite.fresh()
    const run = await copy({ DATA_DIR, DATABASE_URL })
    expect(run).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) as unknown })
    expect(readdirSync(DATA_DIR)).toEqual([])
  })
})

const databases = stores.kinds.filter(({ name }) => name === 'PostgreSQL')

it.each(databases)(
  'npm run copy-store copies every row into $name, and refuses a database that holds some',
  async ({ fresh }) => {
    const settings = await fresh()
    await using from = await openStore({ DATA_DIR: settings.DATA_DIR })
    const create = ['create', '--account', ACCOUNT, '--kind', 'management']
    await runCommandLine(keys, create, { DATA_DIR: settings.DATA_DIR })
    await from.query("UPDATE api_keys SET revoked_at = '2026-11-20T00:00:00.000Z'")
    await runScript(from, FILL)

    const run = await copy(settings)
    expect(run).toMatchObject({ code: 0 })
    await using to = await openStore(settings)
    const tables = await namesIn(from, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    expect(tables).toEqual(expect.arrayContaining(['api_keys', 'quotas', 'scim_members']))
    for (const table of tables.filter((each) => each !== 'migrations')) {
      const [rows, copied] = [await from.query(`SELECT * FROM ${table}`), await to.query(`TABLE ${table}`)]
      expect(run.stdout).toMatch(new RegExp(`^${table} +${rows.length}$`, 'm'))
      expect(copied).toHaveLength(rows.length)
      expect(copied).toEqual(expect.arrayContaining(rows.map((row) => ({ ...row }))))
    }

    const again = await copy(settings)
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('already holds accounts')])
  },
)
