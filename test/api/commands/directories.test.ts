import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createKey } from '../../../api/accounts/keys/key-store.ts'
import { readSettings } from '../../../api/config.ts'
import { OperatorError } from '../../../api/http/errors.ts'
import { createLog } from '../../../api/process/log.ts'
import { openStore, type StoreSettings } from '../../../api/store/open-store.ts'
import { findConnectionByName } from '../../../api/scim/directory/connection-store.ts'
import { FAILURES } from '../../../api/scim/failures.ts'
import { directories as runDirectories } from '../../../api/commands/directories.ts'
import { COMMANDS } from '../../../api/commands/directory-commands.ts'
import { startProgram } from '../../support/api.ts'
import { DIRECTORY_TOKEN, groupsNamed, manyGroups, startDirectory } from '../../support/faulty-directory.ts'
import { TemporaryFolders } from '../../support/nightly.ts'
import { runCommandLine } from '../../support/processes.ts'
import { asEnvironment, TestStores } from '../../support/stores.ts'
import { jobSchema, TOKEN_VARIABLE } from '../../support/sync.ts'

const folders = new TemporaryFolders()
const stores = new TestStores()
afterAll(async () => {
  folders.removeAll()
  await stores.removeAll()
})

function directories(settings: StoreSettings, ...args: string[]) {
  const environment = { ...asEnvironment(settings), [TOKEN_VARIABLE]: DIRECTORY_TOKEN, LOG_LEVEL: 'silent' }
  return runCommandLine((line) => runDirectories(line, () => undefined), args, environment)
}

const SET = ['set', '--account', 'acme', '--allow-loopback']
const TOKEN = ['--token-env', TOKEN_VARIABLE]

const sync = (settings: StoreSettings, ...more: string[]) =>
  directories(settings, 'sync', '--account', 'acme', ...more)

describe('directories, wrongly used', () => {
  it.each([
    { args: ['set'], remedy: '--account NAME' },
    { args: [...SET, ...TOKEN, '--url', 'scim.example.com'], remedy: '--url https://' },
    { args: [...SET, ...TOKEN, '--url', 'ftp://scim.example.com'], remedy: '--url https://' },
    { args: ['set', '--account', 'acme', ...TOKEN, '--url', 'http://a.example'], remedy: '--allow-loopback' },
    { args: [...SET, ...TOKEN, '--url', 'https://user:pass@a.example'], remedy: 'in the token' },
    { args: [...SET, ...TOKEN, '--url', 'https://a.example/?tenant=1'], remedy: 'must end with its path' },
    { args: [...SET, '--url', 'https://a.example'], remedy: '--token-env VARIABLE or --token-file' },
    { args: [...SET, ...TOKEN, '--token-file', 'x', '--url', 'https://a.example'], remedy: 'either' },
    {
      args: [...SET, ...TOKEN, '--url', 'https://a.example', '--members', 'some'],
      remedy: '--members inline',
    },
    {
      args: [...SET, ...TOKEN, '--url', 'https://a.example', '--schedule', 'daily'],
      remedy: '--schedule "0',
    },
    {
      args: [...SET, ...TOKEN, '--url', 'https://a.example', '--schedule', '0 2 30 2 *'],
      remedy: '--schedule',
    },
    { args: ['sync', '--acount', 'acme'], remedy: 'sync --account NAME' },
    { args: ['list', '--account', 'acme'], remedy: 'Say list' },
  ])('names the remedy on $args before it opens anything', ({ args: [name = '', ...args], remedy }) => {
    expect(() => COMMANDS[name]?.prepare(args)).toThrow(OperatorError)
    expect(() => COMMANDS[name]?.prepare(args)).toThrow(remedy)
  })
})

describe('directories --help', () => {
  it('names every command', async () => {
    const run = await directories({ DATA_DIR: folders.make() }, '--help')
    expect(run.code).toBe(0)
    for (const command of ['set', 'list', 'remove', 'test', 'sync'])
      expect(run.stdout).toContain(`  ${command}`)
  })
})

describe.each(stores.kinds)('on $name', ({ fresh }) => {
  /** The settings of a store with the account "acme" in it. */
  async function withAccount(): Promise<StoreSettings> {
    const settings = await fresh()
    const store = await openStore(settings, new Date())
    await createKey(store, { account: 'acme', kind: 'management', now: new Date() })
    await store.close()
    return settings
  }

  /** The settings of a store whose account "acme" is connected to the directory. */
  async function connected(url: string, ...more: string[]): Promise<StoreSettings> {
    const settings = await withAccount()
    const environment = { ...asEnvironment(settings), [TOKEN_VARIABLE]: DIRECTORY_TOKEN }
    const store = await openStore(settings, new Date())
    await COMMANDS['set']?.prepare([...SET.slice(1), '--url', url, ...TOKEN, ...more])({
      store,
      settings: readSettings(environment),
      environment,
      signal: new AbortController().signal,
      clock: () => new Date(),
      log: createLog('silent'),
      print: () => undefined,
      note: () => undefined,
    })
    await store.close()
    return settings
  }

  describe('directories set', () => {
    it('connects an account, and list shows it without the token', async () => {
      const settings = await withAccount()
      const url = 'https://scim.example.com/v2'
      const options = ['--members', 'per_group', '--schedule', '0 * * * *']
      const run = await directories(settings, 'set', '--account', 'acme', '--url', url, ...TOKEN, ...options)
      expect(run).toMatchObject({ code: 0, stdout: '' })
      const list = await directories(settings, 'list')
      expect(list.stdout).toMatch(
        /^account\turl\t.*\nacme\thttps:\/\/scim\.example\.com\/v2\tenv:DIRECTORY_TOKEN\tper_group\t0 \* \* \* \*\t\d{4}-[^\t]+Z\t\t\n$/,
      )
      expect(list.stdout + run.stderr).not.toContain(DIRECTORY_TOKEN)
    })

    it('takes the place of the former connection', async () => {
      const settings = await connected('http://127.0.0.1:1/a', '--schedule', '0 * * * *')
      await directories(settings, 'set', '--account', 'acme', '--url', 'https://b.example', ...TOKEN)
      const store = await openStore(settings, new Date())
      expect(await findConnectionByName(store, 'acme')).toMatchObject({
        url: new URL('https://b.example/'),
        schedule: null,
        nextSyncAt: null,
        reach: { allowLoopback: false, allowPrivate: false },
      })
      await store.close()
    })

    it('warns of a token that is not there yet', async () => {
      const settings = await withAccount()
      const run = await directories(
        settings,
        ...SET,
        '--url',
        'https://a.example',
        '--token-env',
        'NOT_SET_YET',
      )
      expect(run.code).toBe(0)
      expect(run.stderr).toContain('NOT_SET_YET holds no token')
    })

    it('does not repeat a token that was typed for the name of a variable', async () => {
      const args = [...SET, '--url', 'https://a.example', '--token-env', 'secret-token.x']
      const run = await directories(await withAccount(), ...args)
      expect(run.code).toBe(2)
      expect(run.stderr).not.toContain('secret-token')
    })
  })

  describe('directories, wrongly used', () => {
    it.each([
      { args: [...SET, ...TOKEN], remedy: '--url https://' },
      {
        args: ['set', '--account', 'nobody', ...TOKEN, '--url', 'https://a.example'],
        remedy: 'keys -- create',
      },
      { args: ['remove', '--account', 'acme'], remedy: 'set makes one' },
      { args: ['test', '--account', 'acme'], remedy: 'set makes one' },
      { args: ['sync', '--account', 'acme'], remedy: 'set makes one' },
      { args: ['connect'], remedy: 'expected set, list, remove, test, sync' },
      { args: [], remedy: 'set --account NAME' },
    ])('exits 2 and names the remedy on $args', async ({ args, remedy }) => {
      const run = await directories(await withAccount(), ...args)
      expect(run).toMatchObject({ code: 2, stdout: '' })
      expect(run.stderr).toContain(remedy)
      expect(run.stderr).not.toContain('    at ')
    })
  })

  describe('directories sync', () => {
    it('syncs and prints the job', async () => {
      await using directory = await startDirectory(groupsNamed('1', '2'))
      const settings = await connected(directory.url)
      const run = await sync(settings)
      expect(run.code).toBe(0)
      expect(jobSchema.parse(JSON.parse(run.stdout))).toMatchObject({ status: 'succeeded', synced_groups: 2 })
      expect(run.stderr).toContain('Read 2 groups of 2.')
      expect(run.stderr).not.toContain(DIRECTORY_TOKEN)
      expect((await directories(settings, 'list')).stdout).toMatch(/\tsucceeded\t\d{4}-[^\t]+Z\n$/)
    })

    it.each(['test', 'sync', 'sync --dry-run'])(
      'tells once that the directory wants to be asked more slowly: %s',
      async (words) => {
        const slowDown = { status: 429, headers: { 'Retry-After': '0' }, body: {} }
        await using directory = await startDirectory(groupsNamed('1'), {
          quirk: ({ before }) => (before < 2 ? slowDown : undefined),
        })
        const settings = await connected(directory.url)
        const run = await directories(settings, ...words.split(' '), '--account', 'acme')
        expect(run.code).toBe(0)
        expect(run.stderr.match(/slow down/g)).toHaveLength(1)
      },
    )

    it('takes the token from a file that nobody else may read', async () => {
      await using directory = await startDirectory(groupsNamed('1'))
      const file = join(folders.make(), 'token')
      writeFileSync(file, `${DIRECTORY_TOKEN}\n`)
      chmodSync(file, 0o600)
      const settings = await withAccount()
      await directories(settings, ...SET, '--url', directory.url, '--token-file', file)
      expect((await sync(settings)).code).toBe(0)

      chmodSync(file, 0o640)
      const args = ['sync', '--account', 'acme']
      const run = await startProgram('commands/directories.ts', args, asEnvironment(settings)).ended
      expect(run.code).toBe(1)
      expect(run.stderr).toContain('chmod 0600')
      expect(JSON.parse(run.stdout)).toMatchObject({ error_message: FAILURES.token_unavailable })
    })

    it('exits 1 with the sentence of the failure', async () => {
      await using directory = await startDirectory([], { quirk: () => ({ status: 401, body: {} }) })
      const run = await sync(await connected(directory.url))
      expect(run.code).toBe(1)
      expect(run.stderr).toContain(FAILURES.directory_unauthorized)
      expect(JSON.parse(run.stdout)).toMatchObject({ status: 'failed' })
    })

    it('--dry-run prints what would change and writes nothing', async () => {
      await using directory = await startDirectory(groupsNamed('1', '2', '3'))
      const settings = await connected(directory.url)
      await sync(settings)
      directory.groups.splice(0, 2, { id: '1', displayName: 'New\tname' })
      directory.groups.push(...groupsNamed('4'))
      const expected =
        'change\tscim_id\tdisplay_name\tmembers\nupdate\t1\tNew name\t\ncreate\t4\tGroup 4\t0 -> 1\ndelete\t2\tGroup 2\t\n'
      for (let times = 0; times < 2; times += 1) {
        expect(await sync(settings, '--dry-run')).toMatchObject({ code: 0, stdout: expected })
      }
      const store = await openStore(settings, new Date())
      expect(await store.query('SELECT 1 AS job FROM scim_sync_jobs')).toHaveLength(1)
      await store.close()
    })

    it('--allow-deletions lets one run delete what the gate would keep', async () => {
      await using directory = await startDirectory(manyGroups(20))
      const settings = await connected(directory.url)
      await sync(settings)
      directory.groups.splice(0, 15)
      const dry = await sync(settings, '--dry-run')
      expect(dry.stdout.match(/^delete\t/gm)).toHaveLength(15)
      expect(dry.stderr).toContain(FAILURES.deletion_threshold_exceeded)
      expect((await sync(settings)).code).toBe(1)
      expect(JSON.parse((await sync(settings, '--allow-deletions')).stdout)).toMatchObject({
        synced_groups: 5,
        deleted_groups: 15,
      })

      directory.groups.length = 0
      expect((await sync(settings)).stderr).toContain(FAILURES.directory_empty)
      expect(JSON.parse((await sync(settings, '--allow-deletions')).stdout)).toMatchObject({
        synced_groups: 0,
        deleted_groups: 5,
      })
    })
  })

  describe('directories test', () => {
    it('tells what the directory can do', async () => {
      await using directory = await startDirectory(manyGroups(120))
      const run = await directories(await connected(directory.url), 'test', '--account', 'acme')
      expect(run).toMatchObject({ code: 0, stderr: '' })
      expect(run.stdout).toBe(
        `address: ${directory.url}\npages by: index\ngroups in all: 120\ngroups on the first page: 100\n` +
          'of these with a list of members: 100\n',
      )
    })

    it.each([
      ['by cursor alone', ['startIndex'], { cursor: true }, 'cursor'],
      ['in no way', ['startIndex', 'cursor'], {}, 'nothing'],
    ])('asks a directory that pages %s', async (_how, refused, options, told) => {
      await using directory = await startDirectory(manyGroups(3), {
        ...options,
        quirk: ({ query }) =>
          refused.some((name) => query.has(name)) ? { status: 400, body: {} } : undefined,
      })
      const run = await directories(await connected(directory.url), 'test', '--account', 'acme')
      expect(run.stdout).toContain(`\npages by: ${told}`)
    })

    it.each([
      ['per_group', undefined, 'members of the first, requested by its id: 1\n'],
      ['per_group', { id: '1', displayName: 'A' }, 'members of the first, requested by its id: not stated\n'],
      ['per_group', 404, 'members of the first, requested by its id: it cannot be read\n'],
      ['off', undefined, ''],
    ])('asks for members as a sync would: %s, reply %j', async (members, reply, told) => {
      await using directory = await startDirectory(manyGroups(3), {
        quirk: ({ path }) => {
          if (path !== '/Groups/1' || reply === undefined) return undefined
          return typeof reply === 'number' ? { status: reply, body: {} } : { body: reply }
        },
      })
      const settings = await connected(directory.url, '--members', members)
      const run = await directories(settings, 'test', '--account', 'acme')
      expect(run).toMatchObject({ code: 0, stderr: '' })
      expect(run.stdout).toMatch(new RegExp(`\ngroups on the first page: 3\n${told}$`))
    })

    it('needs no group to ask for', async () => {
      await using directory = await startDirectory([])
      const settings = await connected(directory.url, '--members', 'per_group')
      const run = await directories(settings, 'test', '--account', 'acme')
      expect(run.stdout).toMatch(/\ngroups on the first page: 0\n$/)
    })

    it('exits 1 and says what is wrong', async () => {
      await using directory = await startDirectory([], { quirk: () => ({ status: 404, body: {} }) })
      const run = await directories(await connected(directory.url), 'test', '--account', 'acme')
      expect(run).toMatchObject({ code: 1, stdout: '' })
      expect(run.stderr).toContain('status 404')
    })
  })

  describe('directories remove', () => {
    it('removes the connection and keeps the groups', async () => {
      await using directory = await startDirectory(groupsNamed('1'))
      const settings = await connected(directory.url)
      await sync(settings)
      expect((await directories(settings, 'remove', '--account', 'acme')).code).toBe(0)
      expect((await directories(settings, 'list')).stdout).toMatch(/^account\t[^\n]+\n$/)
      const store = await openStore(settings, new Date())
      expect(await store.query('SELECT 1 AS x FROM scim_groups WHERE deleted_at IS NULL')).toHaveLength(1)
      await store.close()
    })
  })
})
