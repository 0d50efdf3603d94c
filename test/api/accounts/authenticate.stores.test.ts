/** CONTRACT 2 and 9: which credentials each operation takes, how keys are stored, never logged, and handled by `npm run keys`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createFirstKey } from '../../../api/accounts/keys.ts'
import { keys } from '../../../api/commands/keys.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { envelopeSchema, startApi, UNKNOWN_KEY, until, type Api } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { runCommandLine } from '../../support/processes.ts'
import { asEnvironment, stores } from '../../support/stores.ts'

const KINDS = ['inference', 'management'] as const

/** The keys in the output of `list --json`. */
function rowsIn(json: string) {
  return z.array(z.record(z.string(), z.unknown())).parse(JSON.parse(json))
}

describe.each(stores.kinds)('on $name', ({ fresh, name }) => {
  let settings: Awaited<ReturnType<typeof fresh>>
  let api: Api

  beforeEach(async () => {
    settings = await fresh()
    api = await startApi(settings.DATA_DIR, { environment: asEnvironment(settings) })
  })
  afterEach(() => api.close())

  /** The output of `npm run keys`, which has its own connections, as another process has. */
  async function command(...args: string[]): Promise<string> {
    const { code, stdout } = await runCommandLine(keys, args, asEnvironment(settings))
    expect(code).toBe(0)
    return stdout.trimEnd()
  }

  /** Message and account of a 401. */
  async function refusal(authorization: string | undefined, path = '/datasets/app-rankings') {
    const response = await api.get(path, undefined, authorization ? { headers: { authorization } } : {})
    expect([response.status, response.headers.get('WWW-Authenticate')]).toEqual([401, 'Bearer'])
    const { error, user_id: account } = envelopeSchema.parse(await response.json())
    return { message: error.message, account }
  }

  it('the dataset takes keys of both kinds, open paths any header, and a key of the wrong kind has its account', async () => {
    expect((await api.get('/status', undefined, { headers: { authorization: 'nonsense' } })).status).toBe(200)
    for (const kind of KINDS)
      expect((await api.get('/datasets/app-rankings', await api.makeKey(kind))).status).toBe(503)
    expect(await refusal(`Bearer ${await api.makeKey('inference')}`, '/scim/groups')).toEqual({
      message: expect.stringContaining('of kind management'),
      account: expect.stringMatching(/^[\da-f-]{36}$/),
    })
  })

  it('the scheme may be in any case, with spaces around the key', async () => {
    const key = await api.makeKey('management')
    for (const authorization of [`Bearer ${key}`, `bearer ${key}`, `BEARER   ${key}  `])
      expect((await api.get('/scim/groups', undefined, { headers: { authorization } })).status).toBe(200)
  })

  it('what another process does to a key counts from the next request on; all other credentials have their own refusal', async () => {
    const key = await command('create', '--account', 'moved', '--kind', 'management')
    for (let request = 0; request < 3; request += 1)
      expect((await api.get('/scim/groups', key)).status).toBe(200)
    await command('revoke', String(rowsIn(await command('list', '--json'))[0]?.['id']))
    const wrong = [undefined, `Bearer ${UNKNOWN_KEY}`, `Bearer ${key}`, 'Basic x']
    const refusals = await Promise.all(wrong.map((each) => refusal(each)))
    expect(refusals[2]?.message).toBe('This key was revoked: send another one')
    expect(new Set(refusals.map(({ message }) => message)).size).toBe(wrong.length)
    for (const { message, account } of refusals)
      expect([message.includes('sk-'), account]).toEqual([false, null])
    for (const each of ['Bearer', 'Bearer ', 'Bearer a b', 'abc'])
      expect((await refusal(each)).message).toContain('Malformed Authorization header')
  })

  it('a hash and four characters of a key are stored, never the key; an account is found again by its name', async () => {
    const made: string[] = []
    for (const kind of KINDS) made.push(await api.makeKey(kind, 'acme'))
    const dump = JSON.stringify(await api.store.query('SELECT * FROM api_keys'))
    for (const key of made) {
      expect(dump).not.toContain(key.slice(-5))
      expect(dump).toContain(key.slice(-4))
    }
    const rows = rowsIn(await command('list', '--json'))
    const kinds = KINDS.map((kind) => expect.objectContaining({ account: 'acme', kind }))
    expect(rows).toEqual(expect.arrayContaining(kinds))
    expect(new Set(rows.map((row) => row['account_id'])).size).toBe(1)
  })

  it.runIf(name === 'SQLite')(
    'hashes of keys have an index, so that a key is looked up in constant work',
    async () => {
      const lookUp = "SELECT id FROM api_keys WHERE key_hash IN (VALUES ('x'))"
      const plan = await api.store.query(`EXPLAIN QUERY PLAN ${lookUp}`)
      expect(JSON.stringify(plan)).toMatch(/SEARCH api_keys USING INDEX \S+ \(key_hash=\?\)/)
    },
  )

  it('one first key is created by processes that start together, and none later', async () => {
    const wanted = { account: 'default', kind: 'inference', now: new Date() } as const
    const other = await openStore(settings)
    const made = await Promise.all(
      [api.store, other, api.store].map((store) => createFirstKey(store, wanted)),
    )
    expect(made.filter((key) => key !== undefined)).toHaveLength(1)
    await other.close()
  })

  it('the log never holds a key, wherever a client puts it and however it encodes it', async () => {
    const key = await api.makeKey()
    await api.get(`/datasets/app-rankings?limit=${key}&${key}=1`, key)
    await api.get(`/a/${key}/${await api.makeKey('management')} sk-other`, key)
    await api.get(`/${key.replaceAll('-', '%2D').replace('s', '%73')}`, key)
    await api.get('/status', undefined, { headers: { Authorization: key, 'X-Key': key } })
    const lines = await until(() => {
      const requests = api.messages().filter((line) => line['msg'] === 'request')
      return requests.length === 4 && requests
    })
    const text = api.lines.join('')
    expect(text).not.toContain(key.slice(-20))
    expect(text.toLowerCase()).not.toContain('bearer')
    expect(lines.map((line) => line['path'])).toContain(
      '/api/v1/a/sk-inference-[hidden]/sk-management-[hidden] sk-other',
    )
  })
})

stores.describeOnce('npm run keys', () => {
  const run = (dataDir: string, ...args: string[]) => runCommandLine(keys, args, { DATA_DIR: dataDir })
  const shown = async (dataDir: string) => rowsIn((await run(dataDir, 'list', '--json')).stdout)

  it('create prints the key and nothing else on stdout; list never shows it; revoke takes the id that list shows', async () => {
    const dataDir = makeFolder()
    const made = await run(dataDir, 'create', '--account', 'Acme Inc', '--kind', 'management')
    const key = made.stdout.trim()
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^sk-management-[\w-]{43}\n$/)])
    expect(made.stderr).not.toContain(key)
    const listed = await run(dataDir, 'list')
    expect(listed.stdout).not.toContain(key)
    const [row] = await shown(dataDir)
    expect(row).toMatchObject({
      account: 'Acme Inc',
      kind: 'management',
      ends_with: key.slice(-4),
      revoked_at: null,
    })

    expect((await run(dataDir, 'revoke', String(row?.['id']))).code).toBe(0)
    const after = await run(dataDir, 'list')
    expect(after.stdout).toMatch(/^id +account +kind .*\n.* \d{4}-\d\d-\d\dT[\d:.]+Z\n$/)
    // The first revocation stays.
    expect((await run(dataDir, 'revoke', String(row?.['id']))).code).toBe(0)
    expect((await run(dataDir, 'list')).stdout).toBe(after.stdout)
  })

  it('limit changes only the limits that it names, and off lifts one', async () => {
    const dataDir = makeFolder()
    const limits = ['--requests-per-minute', '20', '--tokens-per-day', '100000', '--expires', '2031-02-03']
    await run(dataDir, 'create', '--account', 'a', '--kind', 'inference', ...limits)
    const limitsOf = async () => Object.values((await shown(dataDir))[0] ?? {}).slice(-3)
    expect(await limitsOf()).toEqual([20, 100_000, '2031-02-03T00:00:00.000Z'])
    const id = String((await shown(dataDir))[0]?.['id'])
    const ran = await run(dataDir, 'limit', id, '--requests-per-minute', '5', '--expires', 'off')
    expect(ran).toMatchObject({ code: 0, stdout: '' })
    expect(ran.stderr).toBe(`Key ${id}: 5 requests a minute, 100000 tokens a UTC day, never expires.\n`)
    expect(await limitsOf()).toEqual([5, 100_000, null])
  })

  it('limit refuses limits of chat for a management key, but not its end', async () => {
    const dataDir = makeFolder()
    await run(dataDir, 'create', '--account', 'a', '--kind', 'management')
    const id = String((await shown(dataDir))[0]?.['id'])
    const refused = await run(dataDir, 'limit', id, '--requests-per-minute', '5')
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('A management key sends no chat requests')
    const off = ['--requests-per-minute', 'off', '--expires', '2031-02-03']
    expect((await run(dataDir, 'limit', id, ...off)).code).toBe(0)
  })

  it.each([
    ['', 'expected create, list, limit, revoke'],
    ['make', 'expected create, list, limit, revoke'],
    // Every object has a property of this name.
    ['constructor', 'expected create, list, limit, revoke'],
    ['create --kind inference', '--account: Expected a name'],
    ['create --account= --kind inference', '--account: Expected a name'],
    ['create --account=a\tb --kind inference', '--account: Expected a name'],
    ['create --account a', '--kind: Expected inference, management\n'],
    ['create --account a --kind admin', 'Expected inference, management, not "admin"'],
    ['create --acount a', 'create --help'],
    ['create --account a --kind inference x', 'create --help'],
    ['create --account a --kind inference --expires soon', '--expires: Expected a UTC day'],
    ['create --account a --kind inference --expires 2020-01-31', 'is over: use a later time'],
    ['create --account a --kind management --tokens-per-day 9', 'leave out --requests-per-minute'],
    ['limit', 'Expected ID: see npm run -s keys -- limit --help'],
    ['limit x --tokens-per-day 0', '-day: Expected a whole number from 1 to 1000000000000, or off'],
    ['limit x --requests-per-minute 1.5', '-minute: Expected a whole number from 1 to 1000000, or off'],
    ['limit x --kind management', 'limit --help'],
    ['list all', 'Expected no arguments, not "all"'],
    ['revoke', 'Expected ID: see'],
  ])('exits with 2 and the remedy for %j', async (line, remedy) => {
    const ran = await run(makeFolder(), ...line.split(' ').filter(Boolean))
    expect(ran).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(remedy) as unknown })
    expect(ran.stderr).not.toContain('    at ')
  })

  it.each(['list', 'limit nobody', 'revoke nobody'])(
    '%s makes no store in a mistyped DATA_DIR; with one, it names an unknown id',
    async (line) => {
      const dataDir = join(makeFolder(), 'none')
      const ran = await run(dataDir, ...line.split(' '))
      expect(ran).toMatchObject({ code: 2, stdout: '' })
      expect(ran.stderr).toMatch(
        /^DATA_DIR ".*none" cannot be used: service\.sqlite: nothing is stored there: set/,
      )
      expect(existsSync(dataDir)).toBe(false)
      await run(dataDir, 'create', '--account', 'a', '--kind', 'inference')
      const { stderr } = await run(dataDir, ...line.split(' '))
      expect(stderr).toContain(line === 'list' ? '' : 'No key has the id "nobody": list shows the ids')
    },
  )
})
