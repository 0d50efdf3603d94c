/** CONTRACT 10: PostgreSQL as a remote server: unreachable, rejecting, locked, frozen, or lost in the middle. */
import { Client } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { envelopeSchema, makeKey, startServer, until } from '../../../support/api.ts'
import { makeFolder } from '../../../support/folders.ts'
import { LONG } from '../../../support/long.ts'
import { ask, findPostgres, PASSWORD, startPostgres, type Postgres } from '../../../support/postgres.ts'
import { oneApp, publishSnapshot } from '../../../support/pipeline/snapshot.ts'
import { startProgram } from '../../../support/processes.ts'
import { asEnvironment } from '../../../support/stores.ts'

const bin = findPostgres()
let server: Postgres

beforeAll(async () => {
  if (bin !== undefined) server = await startPostgres(bin)
}, LONG.timeout)

/** Settings of a store in its own database, with changed parts of the address. */
async function database(change: (url: URL) => unknown = () => undefined) {
  const url = new URL(await server.createDatabase())
  change(url)
  return { DATA_DIR: makeFolder(), DATABASE_URL: url.href, url: url.href }
}

/** How `npm run keys -- list` ends over the database at an address. */
const listKeys = (url: string, environment: Readonly<Record<string, string>> = {}) =>
  startProgram('api/commands/keys.ts', ['list'], { DATABASE_URL: url, ...environment }).ended

describe.skipIf(bin === undefined)('a command on a database that cannot be used', () => {
  it.each<readonly [string, (url: URL) => unknown, RegExp]>([
    ['a wrong password', (url) => (url.password = 'wr0ng-password'), /authentication/],
    ['no such database', (url) => (url.pathname = '/missing'), /does not exist/],
    ['no server there', (url) => (url.port = '1'), /ECONNREFUSED/],
    ['no TLS', (url) => (url.search = '?sslmode=verify-full'), /SSL/],
  ])('names host and database and never the password: %s', async (_fault, change, reason) => {
    const { url } = await database(change)
    const { host, pathname } = new URL(url)
    const { code, stdout, stderr } = await listKeys(url)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`DATABASE_URL: database "${pathname.slice(1)}" at ${host} cannot be used: `)
    expect(stderr).toMatch(reason)
    expect(stderr).not.toMatch(new RegExp(`${PASSWORD}|wr0ng`))
  })

  it('takes the password from PGPASSWORD if the address has none', async () => {
    const { url } = await database((address) => (address.password = ''))
    await makeKey({ DATABASE_URL: url, PGPASSWORD: PASSWORD })
    expect(await listKeys(url, { PGPASSWORD: PASSWORD })).toMatchObject({ code: 0 })
    expect(await listKeys(url, { PGPASSWORD: 'wrong' })).toMatchObject({ code: 2, stdout: '' })
  })

  it.each(['', '?lock_timeout=50'])(
    'waits for a lock of others no longer than its limit, or than that in the address "%s"',
    async (search) => {
      const { url } = await database((address) => (address.search = search))
      await makeKey({ DATABASE_URL: url })
      const other = new Client(url)
      await other.connect()
      await other.query('BEGIN; LOCK TABLE accounts, api_keys IN ACCESS EXCLUSIVE MODE')
      const { code, stderr } = await listKeys(url)
      expect([code, stderr]).toEqual([2, expect.stringContaining('lock timeout')])
      await other.end()
      expect(await listKeys(url)).toMatchObject({ code: 0 })
    },
  )

  it('waits for a frozen server no longer than its limit', async () => {
    const { url } = await database()
    await server.whileSuspended(async () => {
      const { code, stderr } = await listKeys(url)
      expect([code, stderr]).toEqual([2, expect.stringContaining('timeout')])
    })
  })

  it('ends the API though the server is frozen', async () => {
    const { stop } = await startServer(asEnvironment(await database()))
    await server.whileSuspended(async () => expect(await stop()).toMatchObject({ code: 0 }))
  })
})

/** The API in its own process, over a snapshot and its own database, once it listens. */
async function startServing() {
  const settings = await database()
  await publishSnapshot(settings.DATA_DIR, oneApp())
  const environment = asEnvironment(settings)
  const { get, stop } = await startServer(environment)
  const statusOf = async (key: string) => (await get('/datasets/app-rankings', key)).status
  return { url: settings.url, environment, get, statusOf, stop }
}

describe.skipIf(bin === undefined)('several API processes on one database', () => {
  it.each([
    ['frozen', 'whileSuspended'],
    ['away', 'whileAway'],
  ] as const)('answer 503 while the server is %s, and go on by themselves', async (_state, meanwhile) => {
    const { environment, get, statusOf, stop } = await startServing()
    const [key, manager] = [await makeKey(environment), await makeKey(environment, 'management')]
    expect(await statusOf(key)).toBe(200)
    await server[meanwhile](async () => {
      const asked = [
        get('/datasets/app-rankings', key),
        get('/scim/groups', manager),
        get('/scim/sync-jobs', manager, { method: 'POST' }),
      ]
      for (const reply of await Promise.all(asked)) {
        expect(reply.status).toBe(503)
        expect(Number(reply.headers.get('Retry-After'))).toBeGreaterThan(0)
        const text = await reply.text()
        envelopeSchema.parse(JSON.parse(text))
        expect(text).not.toMatch(/127\.0\.0\.1|ECONN|postgres/i)
      }
    })
    await until(async () => (await statusOf(key)) === 200)
    const { code, stderr } = await stop()
    expect([code, stderr.includes(PASSWORD)]).toEqual([0, false])
  })

  it('survive connections that the server ends: each request is answered or refused', LONG, async () => {
    const { url, environment, statusOf, stop } = await startServing()
    const statuses = new Set<number>()
    for (let round = 0; round < 20; round += 1) {
      const key = await makeKey(environment)
      const replies = Array.from({ length: 10 }, () => statusOf(key))
      await ask(
        url,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      )
      for (const status of await Promise.all(replies)) statuses.add(status)
    }
    expect([...statuses].filter((status) => ![200, 503].includes(status))).toEqual([])
    const key = await makeKey(environment)
    await until(async () => (await statusOf(key)) === 200)
    expect(await stop()).toMatchObject({ code: 0 })
  })
})
