/** CONTRACT 9: npm run directories. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createKey } from '../../../api/accounts/keys.ts'
import { FAILURES } from '../../../api/scim/failures.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import { makeFolder } from '../../support/folders.ts'
import { startProgram } from '../../support/processes.ts'
import {
  DIRECTORY_TOKEN,
  groupsNamed,
  manyGroups,
  startDirectory,
} from '../../support/scim/faulty-directory.ts'
import { asEnvironment, stores } from '../../support/stores.ts'
import {
  deadJob,
  directories,
  jobSchema,
  rowsIn,
  startHook,
  TOKEN_VARIABLE,
} from '../../support/scim/sync.ts'

const SET = 'set --account acme --allow-loopback'
const TOKEN = `--token-env ${TOKEN_VARIABLE}`
const A = '--url https://a.example'
const OAUTH = '--token-url https://a.example/token'
const CLIENT = '--client-id x --client-secret-env T'

const sync = (settings: StoreSettings, more = '') => directories(settings, `sync --account acme ${more}`)

const rowsOf = (settings: StoreSettings, table: string) => rowsIn(settings, `SELECT * FROM ${table}`)
const countOf = async (settings: StoreSettings, table: string) => (await rowsOf(settings, table)).length

stores.describeOnce('directories, wrongly used', () => {
  it.each([
    ['set', '--account: Expected NAME'],
    [`${SET} ${TOKEN} --url scim.example.com`, '--url: Expected https://HOST/PATH'],
    [`${SET} ${TOKEN} --url ftp://scim.example.com`, 'Expected https://HOST/PATH'],
    [`${SET} ${TOKEN} --url https://user:pass@a.example`, 'into the token'],
    [`${SET} ${TOKEN} --url https://a.example/?tenant=1`, 'ends with its path'],
    [`${SET} ${TOKEN} --url https://a.example/#`, 'ends with its path'],
    [`${SET} ${A} --token-url https://a.example/?client%5Fsecret=x ${CLIENT}`, 'no user, password or secret'],
    [`${SET} ${A} --token-url https://a.example/#token ${CLIENT}`, 'ends with its path'],
    [`${SET} ${TOKEN} --url https://a.example/v2/Groups`, 'no /Groups at the end'],
    [`${SET} ${TOKEN} ${A} --token-file x`, 'either'],
    [`${SET} ${A} --token-file=`, '--token-file: Expected PATH'],
    [`${SET} ${A} ${OAUTH} --client-id= --client-secret-file=`, '--client-id: Expected ID'],
    [`${SET} ${TOKEN} ${A} --members some`, '--members: Expected inline'],
    [`${SET} ${TOKEN} ${A} --schedule daily`, '--schedule: Expected a cron expression in UTC, such as "0'],
    [`${SET} ${TOKEN} ${A} --schedule "0 2 30 2 *"`, '--schedule'],
    [`${SET} ${TOKEN} --gate-percent 101`, '--gate-percent: Expected a whole number'],
    [`${SET} ${TOKEN} --gate-groups -1`, '--gate-groups'],
    ['sync --acount acme', 'See npm run -s directories -- sync --help'],
    ['sync', '--account: Expected NAME'],
    ['list --account acme', '-- list --help'],
    [`${SET} ${A} --client-id x`, '--token-url URL'],
    [`${SET} ${A} ${OAUTH}`, '--client-id ID'],
    [`${SET} ${TOKEN} ${OAUTH}`, 'either --token-env'],
    ['connect', 'expected set, list, remove, test, sync'],
    ['', 'expected set, list'],
    ['list', 'set DATA_DIR or DATABASE_URL as for the service'],
  ])('names the remedy on %s, and makes nothing', async (line, remedy) => {
    const DATA_DIR = join(makeFolder(), 'none')
    const run = await directories({ DATA_DIR }, line)
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toContain(remedy)
    expect(existsSync(DATA_DIR)).toBe(false)
  })

  it.each([
    'abcdef0123456789abcdef0123456789',
    'ABCDEF0123456789ABCDEF0123456789',
    'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
    'AbCdEfGhIjKlMnOpQrStUvWxYz',
    'secret-token.x',
  ])('does not repeat %s, which looks like a token and no variable', async (token) => {
    const { stderr } = await directories({ DATA_DIR: makeFolder() }, `${SET} ${A} --token-env ${token}`)
    expect(stderr).toContain('ACME_SCIM_TOKEN')
    expect(stderr).not.toContain(token)
  })

  it.each([
    `${SET} ${A} --token-env T1`,
    `${SET} ${A} --token-env OKTA_PRODUCTION_DIRECTORY_TOKEN`,
    `${SET} ${A} --token-env acmeScimToken`,
    `${SET} ${A} --token-url https://a.example/token?scope=a --client-id x --client-secret-env scim_secret`,
  ])('takes %s', async (line) => {
    expect((await directories({ DATA_DIR: makeFolder() }, line)).stderr).toContain('nothing is stored there')
  })
})

describe.each(stores.kinds)('on $name', ({ fresh }) => {
  /** The settings of a store with the account "acme". */
  async function withAccount(): Promise<StoreSettings> {
    const settings = await fresh()
    await using store = await openStore(settings)
    await createKey(store, { account: 'acme', kind: 'management', now: new Date() })
    return settings
  }

  /** The settings of a store with account "acme" connected to the directory. */
  async function connected(url: string, more = TOKEN): Promise<StoreSettings> {
    const settings = await withAccount()
    const run = await directories(settings, `${SET} --url ${url} ${more}`)
    expect(run).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('Connected account "acme"'),
    })
    return settings
  }

  it('set connects an account, and list shows it without the token', async () => {
    const options = `${TOKEN} --members per_group --schedule "0 * * * *"`
    const list = await directories(await connected('https://scim.example.com/v2', options), 'list')
    expect(list.stdout).toMatch(
      /^account +url .*\nacme +https:\/\/scim\.example\.com\/v2  env:DIRECTORY_TOKEN  per_group  0 \* \* \* \* +\d{4}-\S+Z\n$/,
    )
    expect(list.stdout).not.toContain(DIRECTORY_TOKEN)
  })

  it('set changes the given options of a connection, and keeps the rest', async () => {
    const more = `${TOKEN} --schedule "0 * * * *" --members off --gate-groups 9`
    const settings = await connected('http://127.0.0.1:1/a', more)
    const found = async () => ({ ...(await rowsOf(settings, 'scim_connections'))[0] })
    const before = await found()
    const url = 'http://127.0.0.1:2/b'
    const run = await directories(settings, `set --account acme --url ${url}`)
    expect(run.stderr).toContain('Deletion gate: 9 groups, 50 members, 20 %.')
    expect(await found()).toEqual({ ...before, url, updated_at: expect.any(String) })

    const others = '--schedule off --no-allow-loopback --gate-percent 50 --url https://b.example'
    await directories(settings, `set --account acme ${others}`)
    const schedule = { schedule: null, next_sync_at: null }
    const changed = { ...schedule, url: 'https://b.example/', gate_percent: 50, allow_loopback: 0 }
    expect(await found()).toEqual({ ...before, ...changed, updated_at: expect.any(String) })
  })

  it('set warns if groups of another address are stored, whose ids may be the same', async () => {
    await using directory = await startDirectory(groupsNamed('1'))
    const settings = await connected(directory.url)
    const set = async (url: string) => (await directories(settings, `${SET} --url ${url}`)).stderr
    expect(await set('https://a.example')).not.toContain('Warning')
    await set(directory.url)
    await sync(settings)
    expect(await set(directory.url)).not.toContain('Warning')
    // Tenants of one server differ in the path.
    expect(await set(`${directory.url}/other`)).toContain('1 groups are stored')
    await directories(settings, 'remove --account acme')
    expect(await set(`https://a.example ${TOKEN}`)).toContain('1 groups are stored')
  })

  it.each([
    [`${SET} ${TOKEN}`, '--url https://'],
    [`${SET} ${A}`, '--token-env VARIABLE, --token-file'],
    ['erase --account nobody', 'keys -- list'],
    [`set --account nobody ${TOKEN} ${A}`, 'keys -- create'],
    ['remove --account acme', 'set creates one'],
    ['test --account acme', 'set creates one'],
    ['sync --account acme', 'set creates one'],
  ])('exits with 2 and the remedy for %s', async (line, remedy) => {
    const run = await directories(await withAccount(), line)
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toContain(remedy)
    expect(run.stderr).not.toContain('    at ')
  })

  it('sync syncs with a token from a private file and prints the job, which list shows', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2'))
    const file = join(makeFolder(), 'token')
    writeFileSync(file, `${DIRECTORY_TOKEN}\n`, { mode: 0o600 })
    const settings = await connected(directory.url, `--token-file ${file}`)
    const run = await sync(settings)
    expect(run).toMatchObject({ code: 0, stderr: expect.not.stringContaining(DIRECTORY_TOKEN) })
    expect(jobSchema.parse(JSON.parse(run.stdout))).toMatchObject({ status: 'succeeded', synced_groups: 2 })
    expect((await directories(settings, 'list')).stdout).toMatch(/ succeeded +\d{4}-\S+Z\n$/)

    chmodSync(file, 0o640)
    const args = ['sync', '--account', 'acme']
    const failed = await startProgram('api/commands/directories.ts', args, asEnvironment(settings)).ended
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('chmod 0600') })
    expect(JSON.parse(failed.stdout)).toMatchObject({ error_message: FAILURES.token_unavailable })
  })

  it('sync and test exit with 1 and the sentence of the failure, which list shows too', async () => {
    await using directory = await startDirectory([], { quirk: () => ({ status: 401, body: {} }) })
    const settings = await connected(directory.url)
    const sentence = FAILURES.directory_unauthorized
    const run = await sync(settings)
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining(sentence) })
    expect(JSON.parse(run.stdout)).toMatchObject({ status: 'failed' })
    expect((await directories(settings, 'list')).stdout).toContain(`Z  ${sentence}\n`)
    const tested = await directories(settings, 'test --account acme')
    expect(tested).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(sentence) })
  })

  it('sync --dry-run prints what would change, with warnings, and writes nothing', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2', '3'))
    const settings = await connected(directory.url)
    await sync(settings)
    const members = [{ value: 'new' }, { value: '' }]
    const three = { id: '3', displayName: 'Group 3', members }
    directory.groups.splice(0, 3, { id: '1', displayName: 'New\tname' }, three, ...groupsNamed('4'))
    for (let times = 0; times < 2; times += 1) {
      const run = await sync(settings, '--dry-run')
      expect(run.code).toBe(0)
      expect(run.stdout).toBe(
        'groups added: 1\n  Group 4\ngroups renamed: 1\n  Group 1 -> New name\ngroups deleted: 1\n  Group 2\n' +
          'members joined: 2\n  Group 3: new\n  Group 4: user-of-4\n' +
          'members left: 2\n  Group 3: user-of-3\n  New name: user-of-1\n' +
          'warning: 1 group with members that have no usable id: these are left out (the first: "3")\n',
      )
    }
    expect(await countOf(settings, 'scim_sync_jobs')).toBe(1)
  })

  it("sync removes as much as the connection's gate allows, and all with --allow-deletions", async () => {
    await using directory = await startDirectory(manyGroups(20))
    const settings = await connected(directory.url, `${TOKEN} --gate-groups 3`)
    const job = async (more?: string): Promise<unknown> => JSON.parse((await sync(settings, more)).stdout)
    await sync(settings)
    directory.groups.splice(0, 5)
    expect((await sync(settings)).stderr).toContain(FAILURES.deletion_threshold_exceeded)
    await directories(settings, 'set --account acme --gate-percent 25')
    expect(await job()).toMatchObject({ deleted_groups: 5 })

    directory.groups.splice(0, 10)
    const dry = await sync(settings, '--dry-run')
    expect(dry.stdout).toContain('groups deleted: 10\n  Group ')
    expect(dry.stderr).toContain(FAILURES.deletion_threshold_exceeded)
    expect(await job('--allow-deletions')).toMatchObject({ synced_groups: 5, deleted_groups: 10 })
    directory.groups.length = 0
    expect((await sync(settings)).stderr).toContain(FAILURES.directory_empty)
    expect(await job('--allow-deletions')).toMatchObject({ synced_groups: 0, deleted_groups: 5 })
  })

  it.each([
    ['inline', 'groups: 120\nwith members: 120\nmemberships: 120\n'],
    ['off', 'groups: 120\nwith members: 0\nmemberships: 0\n'],
  ])('test counts what a sync would read, members %s', async (members, output) => {
    await using directory = await startDirectory(manyGroups(120))
    const settings = await connected(directory.url, `${TOKEN} --members ${members}`)
    const run = await directories(settings, 'test --account acme')
    expect(run).toMatchObject({ code: 0, stdout: output, stderr: '' })
    expect(await countOf(settings, 'scim_groups')).toBe(0)
  })

  it('remove removes the connection and keeps the groups; erase erases all groups, deleted ones included', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2', '3'))
    const settings = await connected(directory.url)
    const counts = () => Promise.all(['scim_groups', 'scim_members'].map((table) => countOf(settings, table)))
    await sync(settings)
    directory.groups.splice(0, 1)
    await sync(settings)
    expect((await directories(settings, 'remove --account acme')).code).toBe(0)
    expect((await directories(settings, 'list')).stdout).toMatch(/^account .*\n$/)
    expect(await counts()).toEqual([3, 2])
    await directories(settings, `${SET} ${A} ${TOKEN}`)
    expect((await directories(settings, 'erase --account acme')).stderr).toContain(
      '3 groups and 2 memberships',
    )
    expect(await counts()).toEqual([0, 0])
    expect((await directories(settings, 'list')).stdout).not.toContain('acme')
    expect(JSON.stringify(await rowsOf(settings, 'scim_sync_jobs'))).not.toMatch(/Group|user-of/)
  })

  it('erase erases nothing while a sync is running, and all once its process is dead', async () => {
    await using directory = await startDirectory(groupsNamed('1', '2'))
    const settings = await connected(directory.url)
    await sync(settings)
    await rowsIn(settings, deadJob('acme', '9999'), [new Date().toISOString()])
    const run = await directories(settings, 'erase --account acme')
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining('erase again once it has ended') })
    expect(await countOf(settings, 'scim_groups')).toBe(2)
    expect((await directories(settings, 'list')).stdout).toContain('acme')
    const running = "scim_sync_jobs WHERE status = 'running'"
    await rowsIn(settings, `INSERT INTO scim_member_lists SELECT 'staged', account_id, id FROM ${running}`)
    await rowsIn(
      settings,
      "UPDATE scim_sync_jobs SET lease_until = '', scheduled = 1 WHERE status = 'running'",
    )
    await using hook = await startHook()
    const environment = { ...asEnvironment(settings), ...hook.environment }
    const erase = startProgram('api/commands/directories.ts', ['erase', '--account', 'acme'], environment)
    expect(await erase.ended).toMatchObject({ code: 0 })
    expect(hook.received).toMatchObject([{ event: 'sync_failed', account: 'acme' }])
    expect(
      await Promise.all(['scim_groups', 'scim_member_lists'].map((table) => countOf(settings, table))),
    ).toEqual([0, 0])
  })
})
