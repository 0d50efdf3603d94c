import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkConfig } from '../../api/commands/check-config.ts'
import { TemporaryFolders } from '../support/pipeline/nightly.ts'
import { freePort, portOf } from '../support/ports.ts'
import { REPOSITORY, runCommandLine, startProcess, startWithoutPrivilege } from '../support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const check = (environment: Readonly<Record<string, string>>) =>
  runCommandLine(checkConfig, [], { PORT: '0', ...environment })

/** An address where nothing listens. */
const nobody = async () => `127.0.0.1:${await freePort()}`

it('check-config accepts a valid configuration, and changes nothing', async () => {
  const dataDir = join(folders.make(), 'not', 'there', 'yet')
  expect(await check({ DATA_DIR: dataDir })).toMatchObject({
    code: 0,
    stdout: 'The configuration is valid\n',
  })
  expect(readdirSync(join(dataDir, '..', '..', '..'))).toEqual([])
})

it('check-config names every fault of settings, files, port and database in one screen, each once', async () => {
  const dataDir = folders.make()
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const database = await nobody()
  const result = await check({
    DATA_DIR: dataDir,
    DATABASE_URL: `postgres://${database}/rankings`,
    PORT: String(portOf(other)),
    NIGHTLY_SCHEDULE: 'at night',
    GATE_VOLUME_LOW: '3',
    CHAT_BODY_MIB: 'much',
    MODELS_FILE: join(dataDir, 'models.json'),
  })
  other.close()
  expect(result).toMatchObject({ code: 2, stderr: '6 faults, 0 warnings\n' })
  expect(result.stdout).toMatch(
    /^fault {4}NIGHTLY_SCHEDULE: .*\nfault {4}GATE_VOLUME_LOW: .*\nfault {4}CHAT_BODY_MIB: .*\n/,
  )
  expect(result.stdout).toContain(`fault    DATABASE_URL: database "rankings" at ${database} cannot be used`)
  expect(result.stdout).toMatch(/^fault {4}Port \d+ is already in use: /m)
  expect(result.stdout).toContain(`fault    MODELS_FILE "${join(dataDir, 'models.json')}" cannot be used`)
})

it('check-config warns of damaged files and unreachable hosts, and exits with 1', async () => {
  const dataDir = folders.make()
  mkdirSync(join(dataDir, 'current'))
  writeFileSync(join(dataDir, 'warehouse.duckdb'), 'SQLite format 3\0')
  const models = join(folders.make(), 'models.json')
  const provider = { name: 'acme', base_url: `http://${await nobody()}/v1`, model: 'm' }
  const secret = { ...provider, name: 'secret', api_key_env: 'NO_SUCH_VARIABLE' }
  writeFileSync(models, JSON.stringify({ models: { 'a/b': { providers: [provider, secret] } } }))
  const result = await check({
    DATA_DIR: dataDir,
    MODELS_FILE: models,
    NOTICE_WEBHOOK: `http://${await nobody()}/hook`,
    SUCCESS_PING: `http://${await nobody()}/ping`,
    USAGE_SOURCE: `clickhouse://${await nobody()}/default?table=usage`,
  })
  expect(result).toMatchObject({ code: 1, stderr: '0 faults, 5 warnings\n' })
  for (const name of ['USAGE_SOURCE', 'NOTICE_WEBHOOK', 'SUCCESS_PING', 'MODELS_FILE'])
    expect(result.stdout).toMatch(
      new RegExp(`^warning  ${name}: nothing answers at 127\\.0\\.0\\.1, port \\d+: ECONNREFUSED$`, 'm'),
    )
  expect(result.stdout).toContain('warning  secret of a/b is left out: NO_SUCH_VARIABLE is not set')
})

it('check-config names a store that is not a database', async () => {
  const dataDir = folders.make()
  writeFileSync(join(dataDir, 'service.sqlite'), 'x'.repeat(5000))
  const result = await check({ DATA_DIR: dataDir })
  expect(result.code).toBe(2)
  expect(result.stdout).toMatch(/^fault {4}file ".*service\.sqlite" cannot be used: .*not a database/m)
})

it('check-config names each file of DATA_DIR that the user may not use', async () => {
  const dataDir = folders.make()
  for (const folder of ['snapshots', 'raw', join('raw', 'usage')]) mkdirSync(join(dataDir, folder))
  writeFileSync(join(dataDir, 'service.sqlite'), '')
  for (const name of ['service.sqlite', 'snapshots', join('raw', 'usage')])
    chmodSync(join(dataDir, name), 0o400)
  const environment = { DATA_DIR: dataDir, PORT: '0' }
  const { code, stdout } = await startWithoutPrivilege(['api/commands/check-config.ts'], environment).ended
  expect(code).toBe(2)
  for (const name of ['service.sqlite', 'snapshots', join('raw', 'usage')])
    expect(stdout).toContain(`EACCES: permission denied, access '${join(dataDir, name)}'`)
})

it('DATA_DIR that is a file is named once, for the API and the pipeline', async () => {
  const file = join(folders.make(), 'file')
  writeFileSync(file, '')
  symlinkSync(file, `${file}-link`)
  for (const dataDir of [file, `${file}-link`]) {
    const { code, stdout } = await check({ DATA_DIR: dataDir })
    expect(code).toBe(2)
    expect(stdout).toBe(`fault    DATA_DIR "${dataDir}" cannot be used: ${dataDir} is not a folder\n`)
  }
})

it('the schedule reports every fault before it starts anything', async () => {
  const file = join(folders.make(), 'file')
  writeFileSync(file, '')
  const environment = { DATA_DIR: file, GATE_VOLUME_LOW: 'half', PIPELINE_MEMORY: 'much' }
  const program = [join(REPOSITORY, 'pipeline', 'schedule.ts')]
  const { code, stderr } = await startProcess(process.execPath, program, { environment }).ended
  expect(code).toBe(2)
  expect(stderr).toMatch(/PIPELINE_MEMORY[^]*GATE_VOLUME_LOW/)
})

describe('of two folders that the user may not use', () => {
  const dataDir = folders.make()
  const forbidden = [join(dataDir, 'snapshots'), join(dataDir, 'raw', 'usage')]
  const usage = join(folders.make(), 'usage.csv')
  const models = join(folders.make(), 'models.json')

  beforeAll(() => {
    for (const folder of forbidden) mkdirSync(folder, { recursive: true })
    for (const folder of forbidden) chmodSync(folder, 0o000)
    writeFileSync(usage, 'ts,app_id,prompt_tokens,completion_tokens\n2026-01-05T10:00:00Z,1,1,1\n')
    writeFileSync(models, '{ "models": {} }')
  })
  afterAll(() => forbidden.forEach((folder) => chmodSync(folder, 0o700)))

  const start = async (command: readonly [string, ...string[]]) =>
    await startWithoutPrivilege(command, { DATA_DIR: dataDir, PORT: '0', MODELS_FILE: models }).ended

  it.each<[string, ...string[]]>([['api/server.ts'], ['api/start.ts']])(
    '%s %s names both',
    async (...command) => {
      const { code, stderr } = await start(command)
      expect(code).toBeGreaterThan(0)
      for (const folder of forbidden) expect(stderr).toContain(`'${folder}'`)
      expect(stderr).not.toContain('    at ')
    },
  )

  it.each<[string, ...string[]]>([
    ['pipeline/nightly.ts', 'run'],
    ['pipeline/nightly.ts', 'import', usage],
    ['pipeline/nightly.ts', 'status'],
    ['api/commands/backup.ts', join(usage, '..', 'backup')],
  ])('%s %s names the one that stops it in a sentence', async (...command) => {
    const { code, stderr } = await start(command)
    expect(code).toBeGreaterThan(0)
    expect(stderr).toMatch(/EACCES|permission denied/i)
    expect(stderr).not.toContain('    at ')
  })
})

it('a backup of an unreadable store reports that in a sentence', async () => {
  const dataDir = folders.make()
  mkdirSync(join(dataDir, 'snapshots'))
  writeFileSync(join(dataDir, 'service.sqlite'), '', { mode: 0o000 })
  const command = ['api/commands/backup.ts', join(folders.make(), 'backup')] as const
  const { code, stderr } = await startWithoutPrivilege(command, { DATA_DIR: dataDir }).ended
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^EACCES[^\n]*service\.sqlite'\n$/)])
})
