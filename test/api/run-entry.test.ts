/** CONTRACT 9 and 10: settings, files, permissions, port and database are checked at start, and all faults are reported together. */
import dns from 'node:dns'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { keys } from '../../api/commands/keys.ts'
import { SETTINGS } from '../../api/config.ts'
import { makeFolder } from '../support/folders.ts'
import { freePort, listen } from '../support/ports.ts'
import { runCommandLine, startProgram, UNPRIVILEGED } from '../support/processes.ts'

afterEach(() => vi.restoreAllMocks())

/** Runs a command that reads the settings and opens or makes the store. */
function create(environment: Readonly<Record<string, string>>) {
  const args = ['create', '--account', 'a', '--kind', 'inference']
  return runCommandLine(keys, args, { DATA_DIR: makeFolder(), ...environment })
}

/** How a program ends that is started with these settings. */
function start(program: string, environment: Readonly<Record<string, string>>) {
  return startProgram(program, [], environment).ended
}

it('npm start names every fault of settings, files, port and database at once, also of the pipeline', async () => {
  const dataDir = makeFolder()
  const { port } = await listen(createServer())
  const database = `127.0.0.1:${await freePort()}`
  const { code, stdout, stderr } = await start('api/start.ts', {
    DATA_DIR: dataDir,
    DATABASE_URL: `postgres://${database}/rankings`,
    PORT: String(port),
    NIGHTLY_SCHEDULE: 'at night',
    GATE_VOLUME_LOW: '3',
    // More than all bodies of a key may have together.
    CHAT_BODY_MIB: '65',
    MODELS_FILE: join(dataDir, 'models.json'),
  })
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr.trimEnd().split('\n').toSorted()).toEqual([
    'CHAT_BODY_MIB: Expected a whole number from 1 to 64',
    expect.stringContaining(`DATABASE_URL: database "rankings" at ${database} cannot be used`),
    expect.stringMatching(/^ENOENT: .*models\.json'$/),
    'GATE_VOLUME_LOW: Expected less than 1',
    expect.stringMatching(
      `^HOST and PORT cannot be used: .* in use 127.0.0.1:${port}. Set PORT to a free one`,
    ),
    expect.stringContaining(`MODELS_FILE "${join(dataDir, 'models.json')}" cannot be used`),
    expect.stringMatching(/^NIGHTLY_SCHEDULE: Expected a cron expression/),
  ])
})

it('npm run schedule reports every fault of its settings before it starts anything', async () => {
  const environment = { GATE_VOLUME_LOW: 'half', PIPELINE_MEMORY: 'much' }
  const { code, stderr } = await start('pipeline/schedule.ts', environment)
  expect([code, stderr]).toEqual([2, expect.stringMatching(/PIPELINE_MEMORY[^]*GATE_VOLUME_LOW/)])
  const DATA_DIR = join(makeFolder(), 'missing')
  const missing = await start('pipeline/schedule.ts', { DATA_DIR })
  expect(missing.code).toBe(2)
  expect(missing.stderr).toContain(`There is no folder ${DATA_DIR}: create it`)
})

it('a DATA_DIR that is a file, cannot be made or holds something else than a store is named', async () => {
  const damaged = makeFolder()
  const file = join(damaged, 'service.sqlite')
  writeFileSync(file, 'x'.repeat(5000))
  // The system creates no folders in /proc, and nobody creates one inside a file.
  for (const DATA_DIR of [file, join(file, 'data'), '/proc/data', '/proc/a/b', damaged]) {
    const { code, stdout, stderr } = await create({ DATA_DIR })
    expect([code, stdout]).toEqual([2, ''])
    const reason = DATA_DIR === damaged ? 'file is not a database' : 'E[A-Z]+: '
    expect(stderr).toMatch(new RegExp(`^DATA_DIR "${DATA_DIR}" cannot be used: service\\.sqlite: ${reason}`))
  }
})

it.each([
  [
    'service.sqlite',
    0,
    'api/server.ts',
    /^DATA_DIR "…" cannot .*: EACCES: .*, access '…\/service.sqlite'\n$/,
  ],
  ['service.sqlite', 0, 'api/commands/backup.ts TO', /^…\/service\.sqlite cannot be copied: .*\n$/],
  ['snapshots/', 0, 'api/server.ts', /^EACCES: .*'…\/snapshots'\n$/],
  ['snapshots/', 0, 'pipeline/nightly.ts run', /^EACCES: .*'…\/snapshots'\n$/],
  [
    '',
    0o500,
    'api/server.ts',
    /^DATA_DIR "…" cannot .*: service\.sqlite: (EACCES: .*, access '…')\nRecords of chat .* written: \1\n$/,
  ],
])('DATA_DIR/%s without the rights (mode %i) is named by %s', async (name, mode, command, message) => {
  const [dataDir, aside] = [makeFolder(), makeFolder()]
  const path = join(dataDir, name)
  if (name.endsWith('/')) mkdirSync(path)
  else if (name !== '') writeFileSync(path, '')
  chmodSync(path, mode)
  const MODELS_FILE = join(aside, 'models.json')
  const provider = { name: 'a', base_url: 'http://a.example', model: 'm' }
  writeFileSync(MODELS_FILE, JSON.stringify({ models: { 'a/b': { providers: [provider] } } }))
  const [program = '', ...args] = command.replace('TO', join(aside, 'backup')).split(' ')
  const environment = { DATA_DIR: dataDir, PORT: '0', MODELS_FILE }
  const { code, stdout, stderr } = await startProgram(program, args, environment, UNPRIVILEGED).ended
  chmodSync(path, 0o700)
  expect([code, stdout, stderr.replaceAll(dataDir, '…')]).toEqual([2, '', expect.stringMatching(message)])
})

it('the help explains every setting', async () => {
  const { stdout } = await startProgram('api/server.ts', ['--help'], {}).ended
  const explained = [...stdout.matchAll(/^ {2}([A-Z_]+)\n +(?!Default)\w[^]+?\.$/gm)].map(([, name]) => name)
  expect(explained).toEqual(Object.keys(SETTINGS))
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
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^[A-Z_]+: Expected /)])
  for (const faulty of [name, 'API_MEMORY']) expect(stderr).toContain(faulty)
})

it.each([
  ['postgres://user:p4ss@127.0.0.1:1/database?sslmode=disable', 'database "database" at 127.0.0.1:1'],
  ['postgresql://u:p4ss@127.0.0.1:1/d', 'database "d" at 127.0.0.1:1'],
  ['postgres:///database?host=/run/none', 'database "database" at /run/none'],
])('DATABASE_URL=%s is accepted, and named without user and password', async (DATABASE_URL, named) => {
  const { code, stderr } = await create({ DATABASE_URL })
  expect([code, stderr.includes('p4ss')]).toEqual([2, false])
  expect(stderr).toContain(`DATABASE_URL: ${named} cannot be used: connect E`)
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
