import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createKey, findKey, listKeys, revokeKey } from '../../../api/accounts/keys/key-store.ts'
import { copyStoreCommand } from '../../../api/commands/copy-store.ts'
import { copyStore } from '../../../api/store/copy-store.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import type { Store } from '../../../api/store/store.ts'
import { PASSWORD } from '../../support/postgres.ts'
import { runCommandLine } from '../../support/processes.ts'
import { TestStores, type StoreKind } from '../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const now = new Date('2026-11-20T12:00:00Z')
const ACCOUNT = `Ärger & "Söhne", it's 100 %`
// More than fit into one statement.
const QUOTAS = 2600
const FILL = `
  INSERT INTO quotas (policy, subject, window_ends, used)
  WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${QUOTAS})
  SELECT 'per-day', 'subject ' || n, '2026-11-21T00:00:00.000Z', n FROM numbers;
  INSERT INTO apps VALUES (1000000, 'app.example', 'Ärger & Söhne', 'public', 'legal|travel', 2, '2026-11-20');
  INSERT INTO scim_connections
  SELECT id, 'https://scim.example.com/', 'env', 'TOKEN', 'inline', 0, 1, NULL, NULL, '2026-11-20', 5, NULL, 20, NULL, NULL
  FROM accounts;
  INSERT INTO scim_sync_jobs
  SELECT 'job of ' || id, id, 'failed', NULL, NULL, 'interrupted', '1', '2', '3', 'gone', 1, NULL, NULL FROM accounts;
  INSERT INTO scim_groups
  SELECT 'group of ' || id, id, '1', NULL, 'Staff', 'digest', 2, '1', '2', NULL, 'list of ' || id FROM accounts;
  INSERT INTO scim_member_lists SELECT member_list, account_id, 'job' FROM scim_groups;
  INSERT INTO scim_members SELECT member_list, 'ann', 'User', NULL FROM scim_groups`

/** Every table of the migrations, each with columns that order its rows. */
const ORDERS = {
  accounts: 'id',
  api_keys: 'id',
  apps: 'app_id',
  quotas: 'used',
  scim_connections: 'account_id',
  scim_groups: 'id',
  scim_member_lists: 'id',
  scim_members: 'list_id, member_id',
  scim_sync_jobs: 'id',
}

const everyKind = [...new Set([stores.sqlite, ...stores.kinds])]
const pairs = everyKind
  .flatMap((from) => everyKind.map((to) => ({ from, to })))
  .filter(({ from, to }) => stores.kinds.includes(from) || stores.kinds.includes(to))

/** A store with rows in every table: two keys, one of them revoked, and many quotas. */
async function openFilled({ fresh }: StoreKind) {
  const settings = await fresh()
  const store = await openStore(settings, now)
  const key = await createKey(store, { account: ACCOUNT, kind: 'inference', now })
  const revoked = await createKey(store, { account: 'gone', kind: 'management', now })
  await revokeKey(store, (await findKey(store, revoked))?.id ?? '', now)
  await store.script(FILL)
  return { store, key, settings, [Symbol.asyncDispose]: () => store.close() }
}

async function openEmpty({ fresh }: StoreKind) {
  const settings = await fresh()
  const store = await openStore(settings, now)
  return { store, settings, [Symbol.asyncDispose]: () => store.close() }
}

async function contents(store: Store) {
  const tables: Record<string, unknown>[][] = []
  for (const [table, order] of Object.entries(ORDERS)) {
    const rows = await store.query(`SELECT * FROM ${table} ORDER BY ${order}`)
    expect(rows).not.toEqual([])
    tables.push(rows.map((row) => ({ ...row })))
  }
  return tables
}

function placeOf({ DATA_DIR, DATABASE_URL }: StoreSettings): string {
  return DATABASE_URL ?? join(DATA_DIR, 'service.sqlite')
}

describe.each(pairs)('copyStore from $from.name to $to.name', ({ from, to }) => {
  it('copies every row of every table and leaves the source unchanged', async () => {
    await using source = await openFilled(from)
    await using target = await openEmpty(to)
    const before = await contents(source.store)
    const copied = await copyStore(source.store, target.store)
    expect(copied.map(({ name }) => name).toSorted()).toEqual(Object.keys(ORDERS))
    expect(copied).toEqual(
      expect.arrayContaining([
        { name: 'accounts', rows: 2 },
        { name: 'api_keys', rows: 2 },
        { name: 'quotas', rows: QUOTAS },
      ]),
    )
    expect(await contents(target.store)).toEqual(before)
    expect(await contents(source.store)).toEqual(before)
    expect(await findKey(target.store, source.key)).toMatchObject({ account: ACCOUNT, revoked_at: null })
  })

  it('rejects a target that holds data', async () => {
    await using source = await openFilled(from)
    await using target = await openEmpty(to)
    await createKey(target.store, { account: 'here already', kind: 'inference', now })
    await expect(copyStore(source.store, target.store)).rejects.toThrow(/already holds data \(\w+: 1\)/)
    expect(await listKeys(target.store)).toHaveLength(1)
  })
})

describe.each(stores.kinds)('copyStore from $name', (kind) => {
  it.each([
    { ledger: "DELETE FROM migrations WHERE name = '0002_quotas.sql'", fault: /lacks .*0002_quotas.sql/ },
    {
      ledger: "INSERT INTO migrations VALUES ('9999_new.sql', 'now')",
      fault: /newer version \(9999_new.sql\)/,
    },
  ])('rejects a source with other tables: $ledger', async ({ ledger, fault }) => {
    await using source = await openFilled(kind)
    await using target = await openEmpty(kind)
    await source.store.script(ledger)
    await expect(copyStore(source.store, target.store)).rejects.toThrow(fault)
    expect(await listKeys(target.store)).toEqual([])
  })

  it('copies nothing if one row cannot be copied', async () => {
    await using source = await openFilled(kind)
    await using target = await openEmpty(kind)
    await target.store.script('DROP TABLE quotas; CREATE TABLE quotas (policy TEXT NOT NULL)')
    await expect(copyStore(source.store, target.store)).rejects.toThrow('subject')
    expect(await listKeys(target.store)).toEqual([])
  })
})

function copyTo(...args: string[]) {
  return runCommandLine(copyStoreCommand, args, {})
}

describe.each(pairs)('npm run copy-store from $from.name to $to.name', ({ from, to }) => {
  it('moves an installation and prints the rows of each table', async () => {
    const source = await openFilled(from)
    await source.store.close()
    const target = await to.fresh()
    const run = await copyTo('--from', placeOf(source.settings), '--to', placeOf(target))
    expect(run.stderr).toMatch(/^Copied [^\n]*\n$/)
    const use = target.DATABASE_URL === undefined ? 'as service.sqlite in DATA_DIR' : 'with DATABASE_URL set'
    expect(run.stderr).toContain(`the service uses the copy ${use}`)
    expect(run.stdout).toMatch(/^table\trows\n/)
    expect(run.stdout).toMatch(/^api_keys\t2$/m)
    expect(run.code).toBe(0)
    expect(run.stdout + run.stderr).not.toContain(PASSWORD)

    const moved = await openStore(target, now)
    expect(await findKey(moved, source.key)).toMatchObject({ account: ACCOUNT })
    await moved.close()

    const again = await copyTo('--from', placeOf(source.settings), '--to', placeOf(target))
    expect(again).toMatchObject({ code: 2, stdout: '' })
    expect(again.stderr).toMatch(/already holds data [^\n]*\n$/)
  })
})

stores.describeOnce('npm run copy-store', () => {
  it.each([
    { args: [], fault: '--from STORE --to STORE' },
    { args: ['--from', 'a.sqlite'], fault: '--from STORE --to STORE' },
    { args: ['--form', 'a', '--to', 'b'], fault: '--from STORE --to STORE' },
    { args: ['--from', 'no-such.sqlite', '--to', 'b'], fault: 'no file "no-such.sqlite"' },
    { args: ['--from', 'mysql://h/d', '--to', 'b'], fault: 'postgres://USER' },
    { args: ['--from', 'package.json', '--to', './package.json'], fault: 'the same store' },
    { args: ['--from', 'postgres://h/d', '--to', 'postgres://h/d'], fault: 'the same store' },
    { args: ['--from', 'package.json', '--to', 'b'], fault: 'file is not a database' },
    { args: ['--from', 'postgres://u:s3cret@127.0.0.1:1/d', '--to', 'b'], fault: '"d" at 127.0.0.1:1' },
  ])('exits with 2 and the reason for $args', async ({ args, fault }) => {
    const run = await copyTo(...args)
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toContain(fault)
    expect(run.stderr).not.toMatch(/ {4}at |s3cret/)
  })

  it('does not turn another file into a store', async () => {
    const { DATA_DIR } = await stores.sqlite.fresh()
    const empty = join(DATA_DIR, 'empty.sqlite')
    writeFileSync(empty, '')
    const run = await copyTo('--from', empty, '--to', join(DATA_DIR, 'target.sqlite'))
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(/^file "[^"]+" cannot be used: no such table[^\n]*\n$/)
  })

  it('--help goes to stdout', async () => {
    expect(await copyTo('--help')).toMatchObject({ code: 0, stderr: '' })
  })
})
