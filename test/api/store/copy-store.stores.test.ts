/** CONTRACT 10: what SQLite holds moves into PostgreSQL. */
import { afterAll, describe, expect, it } from 'vitest'
import { createKey, createKeyFinder, listKeys, revokeKey } from '../../../api/accounts/key-store.ts'
import { copyStore } from '../../../api/commands/copy-store.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import { runCommandLine } from '../../support/processes.ts'
import { asEnvironment, TestStores } from '../../support/stores.ts'

const stores = new TestStores()
afterAll(() => stores.removeAll())

const now = new Date('2026-11-20T12:00:00Z')
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

/** A data folder with two keys, one of them revoked, many quotas, and groups. */
async function fill(settings: StoreSettings) {
  const store = await openStore({ DATA_DIR: settings.DATA_DIR }, now)
  const key = await createKey(store, { account: ACCOUNT, kind: 'inference', now })
  const revoked = await createKey(store, { account: 'gone', kind: 'management', now })
  await revokeKey(store, (await createKeyFinder(store)(revoked))?.id ?? '', now)
  await store.script(FILL)
  const keys = await listKeys(store)
  await store.close()
  return { key, keys }
}

function copy(settings: StoreSettings) {
  return runCommandLine(copyStore, [], asEnvironment(settings))
}

describe.each(stores.kinds)('npm run copy-store with a store on $name', ({ name, fresh }) => {
  if (name === 'SQLite') {
    it('asks for DATABASE_URL', async () => {
      expect(await copy(await fresh())).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^DATABASE_URL is not set: /) as unknown,
      })
    })
    return
  }

  it('copies every row of service.sqlite, and refuses a database that holds some', async () => {
    const settings = await fresh()
    const { key, keys } = await fill(settings)
    const run = await copy(settings)
    expect(run).toMatchObject({ code: 0 })
    expect(run.stdout).toContain(`quotas\t${QUOTAS}\n`)

    const store = await openStore(settings, now)
    expect(await listKeys(store)).toEqual(keys)
    expect((await createKeyFinder(store)(key))?.account).toBe(ACCOUNT)
    const tables = `
      SELECT table_name AS name FROM information_schema.tables
      WHERE table_schema = current_schema() AND table_name <> 'migrations'`
    for (const { name: table } of await store.query(tables)) {
      expect(run.stdout).toContain(`\n${String(table)}\t`)
    }
    await store.close()

    expect(await copy(settings)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('already holds accounts') as unknown,
    })
  })
})
