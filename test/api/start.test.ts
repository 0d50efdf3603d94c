import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { rankingsSchema, said, startAll, startProgram, until } from '../support/api.ts'
import { TemporaryFolders } from '../support/nightly.ts'
import { freePort } from '../support/ports.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** `npm start` over `dataDir`, once it has said where it listens; `stop` waits for its children too. */
async function start(dataDir: string, settings: Readonly<Record<string, string>> = {}) {
  const { welcome, ...program } = await startAll({ DATA_DIR: dataDir, ...settings })
  return {
    welcome,
    program,
    async stop() {
      program.child.kill('SIGTERM')
      // Output is at its end only when the schedule, which shares it, has ended as well.
      return await program.ended
    },
  }
}

/** A data folder of which the pipeline publishes nothing. */
function brokenFolder(): string {
  const dataDir = folders.make()
  const day = join(dataDir, 'raw', 'usage', 'date=2026-01-01')
  mkdirSync(day, { recursive: true })
  writeFileSync(join(day, 'broken.parquet'), 'not a Parquet file')
  return dataDir
}

/** Sends the request of the "Try it" line. */
function tryIt(welcome: string): Promise<Response> {
  const [, authorization = '', address = ''] = /curl -H 'Authorization: (.*)' '(.*)'/.exec(welcome) ?? []
  return fetch(address, { headers: { authorization } })
}

describe('npm start', () => {
  it('on an empty folder publishes the sample and prints a request that answers', async () => {
    const dataDir = folders.make()
    const first = await start(dataDir)
    expect(first.welcome).toMatch(/^API key: +sk-inference-[\w-]{43} /m)
    const response = await tryIt(first.welcome)
    expect(response.status).toBe(200)
    expect(rankingsSchema.parse(await response.json()).data).toHaveLength(5)
    expect(await first.stop()).toMatchObject({ code: 0 })

    const second = await start(dataDir)
    expect(second.welcome).not.toContain('sk-')
    expect(second.welcome).toContain('Bearer <API_KEY>')
    expect(second.welcome).toContain('npm run -s keys -- create')
    expect((await tryIt(second.welcome)).status).toBe(401)
    expect(await second.stop()).toMatchObject({ code: 0 })
  })

  it('starts the API when the pipeline fails, and says so', async () => {
    const service = await start(brokenFolder())
    expect((await tryIt(service.welcome)).status).toBe(503)
    const { code, stderr } = await service.stop()
    expect(code).toBe(0)
    expect(stderr).toContain('pipeline run failed')
  })

  it('ends, and the run with it, when it is stopped before it serves', async () => {
    const silent = createServer(() => undefined)
    const port = await freePort()
    silent.listen(port, '127.0.0.1')
    const asked = once(silent, 'request')
    const program = startProgram('start.ts', [], {
      DATA_DIR: folders.make(),
      PORT: '0',
      USAGE_SOURCE: `clickhouse://127.0.0.1:${port}/default?table=usage`,
    })
    await asked
    program.child.kill('SIGTERM')
    const { code, stdout, stderr } = await program.ended
    silent.closeAllConnections()
    silent.close()
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).not.toContain('pipeline run failed')
  })

  it('ends when it is stopped while it opens what it serves', async () => {
    const pipe = join(folders.make(), 'models.json')
    await promisify(execFile)('mkfifo', [pipe])
    const settings = { DATA_DIR: brokenFolder(), PORT: '0', MODELS_FILE: pipe }
    const program = startProgram('start.ts', [], settings)
    // Read twice: when the settings are checked, and when the API opens.
    await writeFile(pipe, '{"models":{}}')
    await said(program, 'stderr', /pipeline run failed/)
    const writer = await open(pipe, 'w')
    program.child.kill('SIGTERM')
    await writer.writeFile('{"models":{}}')
    await writer.close()
    const { code, stderr } = await program.ended
    expect(code, stderr).toBe(0)
  })

  it('reads MODELS_FILE again on SIGHUP', async () => {
    const file = join(folders.make(), 'models.json')
    writeFileSync(file, '{"models":{}}')
    const service = await start(brokenFolder(), { MODELS_FILE: file })
    writeFileSync(file, '{')
    service.program.child.kill('SIGHUP')
    await until(() => service.program.output.stderr.includes('models not reloaded'))
    expect(await service.stop()).toMatchObject({ code: 0 })
  })
})
