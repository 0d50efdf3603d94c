/** CONTRACT 9 and 10: the settings of the API: defaults, what they refuse, and how a database that cannot be used is named. */
import dns from 'node:dns'
import { afterEach, expect, it, vi } from 'vitest'
import { keys } from '../../api/commands/keys.ts'
import { makeFolder } from '../support/folders.ts'
import { startProgram, runCommandLine } from '../support/processes.ts'

afterEach(() => vi.restoreAllMocks())

/** Runs a command that reads the settings and opens or makes the store. */
function create(environment: Readonly<Record<string, string>>) {
  const args = ['create', '--account', 'a', '--kind', 'inference']
  return runCommandLine(keys, args, { DATA_DIR: makeFolder(), ...environment })
}

it('every setting has a description and most a default, which the help shows', async () => {
  const { stdout } = await startProgram('api/server.ts', ['--help'], {}).ended
  const shown = stdout
    .slice(stdout.indexOf('Settings'))
    .split(/\n(?= {2}[A-Z])/)
    .slice(1)
  expect(shown.length).toBeGreaterThan(12)
  const defaults = shown.map((text) => {
    const words = text.split(/\s+/).join(' ').trim()
    expect(words).toMatch(/^[A-Z_]+ .+\.$/)
    return `${words.split(' ', 1)[0]}=${/Default: (.*)\.$/.exec(words)?.[1] ?? ''}`
  })
  expect(defaults).toEqual([
    'DATA_DIR=data',
    'DATABASE_URL=',
    'PORT=3000',
    'HOST=127.0.0.1',
    'PUBLIC_URL=',
    'API_MEMORY=1GB',
    'LOG_LEVEL=info',
    'NIGHTLY_SCHEDULE=0 2 * * *',
    'SCIM_CONCURRENT_SYNCS=16',
    'NOTICE_WEBHOOK=',
    'SCIM_SYNC_MINUTES=30',
    'MODELS_FILE=',
    'CHAT_BODY_MIB=32',
  ])
})

it.each([
  ['PORT', '65536'],
  ['PORT', '-1'],
  ['PORT', '80a'],
  ['PORT', '3e3'],
  ['LOG_LEVEL', 'loud'],
  ['DATABASE_URL', 'mysql://user:secret@host/database'],
  ['DATABASE_URL', 'data/service.sqlite'],
  ['DATABASE_URL', 'postgres://host'],
  ['DATABASE_URL', 'postgres://host/'],
  ['DATABASE_URL', 'postgres://host:port/database'],
  ['DATABASE_URL', 'postgres://host/a/b'],
  ['DATABASE_URL', 'postgres://host/%zz'],
  ['SCIM_CONCURRENT_SYNCS', '0'],
  ['SCIM_SYNC_MINUTES', '1.5'],
  ['NIGHTLY_SCHEDULE', 'at night'],
  ['NIGHTLY_SCHEDULE', '0 2 30 2 *'],
])('%s=%s is refused, in a message that names it and every other fault', async (name, value) => {
  const { code, stderr } = await create({ API_MEMORY: 'much', [name]: value })
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^Invalid settings/)])
  for (const faulty of [name, 'API_MEMORY']) expect(stderr).toContain(faulty)
})

it('an empty variable counts as not set', async () => {
  expect(await create({ PORT: '', DATABASE_URL: '' })).toMatchObject({ code: 0 })
})

it.each([
  ['postgres://user:p4ss@127.0.0.1:1/database?sslmode=disable', 'database "database" at 127.0.0.1:1'],
  ['postgresql://u:p4ss@127.0.0.1:1/d', 'database "d" at 127.0.0.1:1'],
  ['postgres:///database?host=/run/none', 'database "database" at /run/none'],
])('DATABASE_URL=%s is accepted, and named without user and password', async (DATABASE_URL, named) => {
  const { code, stderr } = await create({ DATABASE_URL })
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(`DATABASE_URL: ${named} cannot be used: connect E`),
  ])
  expect(stderr).not.toContain('p4ss')
})

it('a database whose host has several addresses is named with the reason of each', async () => {
  const addresses = [1, 2].map((last) => ({ address: `127.0.0.${last}`, family: 4 }))
  vi.spyOn(dns, 'lookup').mockImplementation((...args: readonly unknown[]) => {
    const answer = args.at(-1)
    if (typeof answer === 'function') setImmediate(() => answer(null, addresses))
  })
  const { stderr } = await create({ DATABASE_URL: 'postgres://u@db.example:1/d' })
  expect(stderr).toMatch(/"d" at db\.example:1 cannot be used: connect ECONNREFUSED [\d.:]+, connect /)
})
