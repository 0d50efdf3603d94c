/** CONTRACT 10: what SQLite holds moves into PostgreSQL. */
import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { copyStore } from '../../../api/commands/copy-store.ts'
import { keys } from '../../../api/commands/keys.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import { runCommandLine } from '../../support/processes.ts'
import { asEnvironment, runScript, stores } from '../../support/stores.ts'

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

const keysOf = (settings: StoreSettings, ...args: string[]) =>
  runCommandLine(keys, args, asEnvironment(settings))

/** Fills `service.sqlite` with two keys, one of them revoked, many quotas, and groups; returns the list of keys. */
async function fill({ DATA_DIR }: StoreSettings): Promise<string> {
  for (const [account, kind] of [
    [ACCOUNT, 'inference'],
    ['gone', 'management'],
  ] as const)
    await keysOf({ DATA_DIR }, 'create', '--account', account, '--kind', kind)
  const [id = ''] = (await keysOf({ DATA_DIR }, 'list')).stdout.split('\n')[2]?.split('\t') ?? []
  await keysOf({ DATA_DIR }, 'revoke', id)
  const store = await openStore({ DATA_DIR }, new Date())
  await runScript(store, FILL)
  await store.close()
  return (await keysOf({ DATA_DIR }, 'list')).stdout
}

/** The rows of a query in the store of these settings. */
async function rowsOf(settings: StoreSettings, sql: string) {
  const store = await openStore(settings, new Date())
  const rows = await store.query(sql)
  await store.close()
  return rows.map((row) => ({ ...row }))
}

const copy = (settings: StoreSettings) => runCommandLine(copyStore, [], asEnvironment(settings))

describe.each(stores.kinds)('npm run copy-store with a store on $name', ({ name, fresh }) => {
  if (name === 'SQLite') {
    it.each([
      ['DATABASE_URL', '', /^DATABASE_URL is not set: /],
      [
        'service.sqlite, and makes none',
        'postgres://127.0.0.1:1/none',
        /^DATA_DIR ".*" cannot be used: service\.sqlite: nothing is stored/,
      ],
    ])('asks for %s', async (_what, DATABASE_URL, message) => {
      const settings = await fresh()
      const run = await copy({ ...settings, DATABASE_URL })
      expect(run).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) as unknown })
      expect(readdirSync(settings.DATA_DIR)).toEqual([])
    })
    return
  }

  it('copies every row of service.sqlite, and refuses a database that holds some', async () => {
    const settings = await fresh()
    const listed = await fill(settings)
    const { DATA_DIR } = settings
    const names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('migrations')"
    const tables = (await rowsOf({ DATA_DIR }, names)).map(({ name: table }) => String(table))
    expect(tables).toEqual(expect.arrayContaining(['api_keys', 'quotas', 'scim_members']))
    const run = await copy(settings)
    expect(run).toMatchObject({ code: 0 })
    for (const table of tables) {
      const rows = await rowsOf({ DATA_DIR }, `SELECT * FROM ${table}`)
      expect(run.stdout).toContain(`${table}\t${rows.length}\n`)
      const copied = await rowsOf(settings, `SELECT * FROM ${table}`)
      expect(copied).toHaveLength(rows.length)
      expect(copied).toEqual(expect.arrayContaining(rows))
    }
    expect((await keysOf(settings, 'list')).stdout).toBe(listed)

    expect(await copy(settings)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('already holds accounts') as unknown,
    })
  })
})
