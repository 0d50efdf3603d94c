/**
 * CONTRACT 9: `npm ci && npm start` on a fresh machine publishes and serves the sample, also after failures; the printed
 * request works in a shell.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { rankingsSchema, said, until } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { LONG } from '../../support/long.ts'
import { writeRaw } from '../../support/pipeline/nightly.ts'
import { listen } from '../../support/ports.ts'
import { startProgram, type Started } from '../../support/processes.ts'
import { hasProgram } from '../../support/programs.ts'

/** A data folder without publishable data. */
function brokenFolder(): string {
  const dataDir = makeFolder()
  writeRaw(dataDir, 'usage/date=2026-01-01/broken.parquet', 'not a Parquet file')
  return dataDir
}

/** `npm start` on a free port. */
function start(environment: Readonly<Record<string, string>>): Started {
  return startProgram('api/start.ts', [], { PORT: '0', ...environment })
}

/** What it prints once it serves. */
async function welcomeOf(program: Started): Promise<string> {
  const [welcome] = await said(program, 'stdout', /Address: [^]*Ready: .*\n/)
  return welcome
}

/** Sends the request of the line "Try it". */
function tryIt(welcome: string): Promise<Response> {
  const [, authorization = '', address = ''] = /curl -H 'Authorization: (.*)' '(.*)'/.exec(welcome) ?? []
  return fetch(address, { headers: { authorization } })
}

it('npm start serves though its run fails, and reads MODELS_FILE again on SIGHUP', LONG, async () => {
  const file = join(makeFolder(), 'models.json')
  writeFileSync(file, '{"models":{}}')
  const program = start({ DATA_DIR: brokenFolder(), MODELS_FILE: file })
  const { child, output } = program
  expect((await tryIt(await welcomeOf(program))).status).toBe(503)
  writeFileSync(file, '{')
  child.kill('SIGHUP')
  await until(() => output.stderr.includes('models not reloaded'))
  // The schedule is started again if it ends.
  const schedules = () => output.stderr.split('the next nightly run is at').length - 1
  await until(() => schedules() === 1)
  process.kill(Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')), 'SIGKILL')
  await until(() => schedules() === 2)
  const { code, stderr } = await program.stop()
  expect(code).toBe(0)
  expect(stderr).toContain('pipeline run failed')
  expect(stderr).toContain('nightly schedule ended')
})

it('npm start ends together with the run if it is stopped before it serves', async () => {
  const silent = createServer(() => undefined)
  const { port } = await listen(silent)
  const asked = once(silent, 'request')
  const program = start({
    DATA_DIR: makeFolder(),
    USAGE_SOURCE: `clickhouse://127.0.0.1:${port}/default?table=usage`,
  })
  await asked
  const { code, stdout, stderr } = await program.stop()
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  expect(stderr).not.toContain('pipeline run failed')
})

it('npm start ends if it is stopped while it opens', async () => {
  const pipe = join(makeFolder(), 'models.json')
  await promisify(execFile)('mkfifo', [pipe])
  const program = start({ DATA_DIR: brokenFolder(), MODELS_FILE: pipe })
  // Read twice: by the check of the settings, and by the API.
  await writeFile(pipe, '{"models":{}}')
  await said(program, 'stderr', /"starting"/)
  // A reload that comes too early has nothing to reload.
  program.child.kill('SIGHUP')
  await said(program, 'stderr', /pipeline run failed/)
  const writer = await open(pipe, 'w')
  program.child.kill('SIGTERM')
  await writer.writeFile('{"models":{}}')
  await writer.close()
  const { code, stderr } = await program.ended
  expect(code, stderr).toBe(0)
})

it('npm start on an empty folder publishes the sample, and prints a request that answers', LONG, async () => {
  const dataDir = join(makeFolder(), 'data')
  const program = start({ DATA_DIR: dataDir })
  const welcome = await welcomeOf(program)
  expect(welcome).toMatch(/^API key: +sk-inference-[\w-]{43} /m)
  expect(welcome).toMatch(/Try it: .*\nReady: open http:\/\/127\.0\.0\.1:\d+\/ in a browser\..*\n$/)
  // The run prints one line, beside the note about the sample.
  await said(program, 'stderr', /the next nightly run is at .*\n/)
  const lines = program.output.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
  expect(lines).toEqual([
    expect.stringContaining('sample'),
    expect.stringMatching(/^run {6}215 apps, .* s$/),
    expect.stringMatching(/^schedule: the next nightly run is at /),
  ])
  const response = await tryIt(welcome)
  expect(rankingsSchema.parse(await response.json()).data).toHaveLength(5)
  if (hasProgram('curl')) {
    const command = /Try it: +(.*)/.exec(welcome)?.[1] ?? ''
    const { stdout } = await promisify(execFile)('sh', ['-c', command])
    expect(rankingsSchema.parse(JSON.parse(stdout)).data).toHaveLength(5)
  }
  expect(await program.stop()).toMatchObject({ code: 0, stdout: expect.stringMatching(/Ready: .*\n$/) })
  const rights = (name: string) => (statSync(join(dataDir, name)).mode & 0o777).toString(8)
  expect(['raw', 'warehouse.duckdb', 'service.sqlite'].map(rights)).toEqual(['700', '600', '600'])
  expect(['.', 'current', 'current/app-rankings.duckdb'].map(rights)).toEqual(['755', '755', '644'])

  const second = start({ DATA_DIR: dataDir })
  const again = await welcomeOf(second)
  expect(again).not.toContain('sk-')
  expect(again).toContain('Bearer <API_KEY>')
  expect(again).toContain('npm run -s keys -- create')
  expect((await tryIt(again)).status).toBe(401)
  expect(await second.stop()).toMatchObject({ code: 0 })
})
