/**
 * CONTRACT 9: in a container with a read-only root, all commands and routes need only DATA_DIR: no HOME, no temporary
 * folder.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { said } from '../support/api.ts'
import { makeFolder } from '../support/folders.ts'
import { LONG } from '../support/long.ts'
import { currentSnapshot } from '../support/pipeline/nightly.ts'
import { startProgram, type Started } from '../support/processes.ts'
import { writeModels } from '../support/chat/chat.ts'
import { completion, json, startUpstream } from '../support/chat/upstream.ts'

const dataDir = makeFolder()
const NAMESPACE = ['--user', '--map-root-user', '--mount']
const isAllowed = spawnSync('unshare', [...NAMESPACE, 'mount', '--bind', dataDir, dataDir]).status === 0
if (!isAllowed) process.stderr.write('unshare is not allowed here: the test of a read-only root is skipped\n')

/** Starts one of our programs with write access to DATA_DIR only. */
function startReadOnly(program: string, args: readonly string[], more: readonly string[] = []) {
  const prepare = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && mount -t tmpfs -o ro none /dev/shm'
  const environment = ['env', '-i', 'PATH=/usr/bin:/bin', `DATA_DIR=${dataDir}`, 'PORT=0', ...more]
  const inside = ['unshare', ...NAMESPACE, 'sh', '-c', `${prepare} && exec "$@"`, dataDir, ...environment]
  return startProgram(program, args, {}, inside)
}

describe.runIf(isAllowed)('with a read-only root', () => {
  let service: Started
  let origin = ''
  const keys = { inference: '', management: '' }

  beforeAll(async () => {
    const { url } = await startUpstream({ m: json(completion()) })
    const models = writeModels(dataDir, { 'a/b': [{ base_url: url, model: 'm' }] })
    const first = await startReadOnly('pipeline/nightly.ts', ['run', '--with-sample']).ended
    expect(first).toMatchObject({ code: 0 })
    service = startReadOnly('api/start.ts', [], [`MODELS_FILE=${models}`])
    const [address = ''] = await said(service, 'stdout', /http:\/\/127\.0\.0\.1:\d+/)
    origin = address
    for (const kind of ['inference', 'management'] as const) {
      const make = ['create', '--account', 'a', '--kind', kind]
      keys[kind] = (await startReadOnly('api/commands/keys.ts', make).ended).stdout.trim()
    }
  }, LONG.timeout)
  afterAll(() => service.stop())

  const get = (path: string, key = keys.inference) =>
    fetch(`${origin}${path}`, { headers: { Authorization: `Bearer ${key}` } })

  it('only DATA_DIR can be written', async () => {
    const script = "require('node:fs').writeFileSync('/tmp/written', '')"
    const [file, link] = [join(dataDir, 'write.cjs'), join(dataDir, 'inside.cjs')]
    writeFileSync(file, script)
    writeFileSync(link, script.replace('/tmp/written', join(dataDir, 'written')))
    const asProgram = (path: string) => startReadOnly(join('..', '..', '..', path), []).ended
    expect((await asProgram(file)).stderr).toContain('EROFS')
    expect((await asProgram(link)).code).toBe(0)
  })

  it('every route of the OpenAPI document answers in every format', async () => {
    const id = currentSnapshot(dataDir).split('/').at(-1)
    const base = '/api/v1/datasets'
    const ranking = `${base}/app-rankings`
    const paths = [
      ...['json', 'csv', 'parquet', 'arrow'].flatMap((format) => [
        `${ranking}?format=${format}&start_date=2026-08-01`,
        `${ranking}/daily?app_id=2299688&format=${format}`,
        `${base}/rankings-daily?format=${format}`,
      ]),
      `${ranking}/snapshots`,
      `${ranking}/snapshots/${id}`,
      ...readdirSync(currentSnapshot(dataDir), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.includes('.') && !['report.json', 'record.json'].includes(name))
        .map((name) => `${ranking}/snapshots/${id}/${name}`),
      ...['status', 'openapi.json', 'models', 'models/a/b'].map((name) => `/api/v1/${name}`),
      ...['', 'rankings.csv', 'rankings.json', 'models', 'method', 'docs'].map((name) => `/${name}`),
      ...['', '/history.csv'].map((end) => `/apps/2299688${end}`),
      '/?q=a',
      ...['feed.xml', 'healthz', 'readyz', 'metrics'].map((name) => `/${name}`),
    ]
    for (const path of paths) expect([path, (await get(path)).status]).toEqual([path, 200])
    for (const path of ['sync-jobs', 'groups'])
      expect([path, (await get(`/api/v1/scim/${path}`, keys.management)).status]).toEqual([path, 200])
  })

  it('a chat request is answered and counted', async () => {
    const reply = await fetch(`${origin}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${keys.inference}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ model: 'a/b', messages: [{ role: 'user', content: 'Hi' }] }),
    })
    expect(reply.status).toBe(200)
    expect(z.object({ model: z.string() }).parse(await reply.json()).model).toBe('a/b')
    expect(readdirSync(join(dataDir, 'raw', 'usage')).length).toBeGreaterThan(42)
  })

  it.each([
    ['pipeline/nightly.ts', 'status'],
    ['pipeline/nightly.ts', 'plan'],
    ['pipeline/nightly.ts', 'quarantine'],
    ['pipeline/nightly.ts', 'import', join(dataDir, 'usage.csv')],
    ['pipeline/nightly.ts', 'run'],
    ['pipeline/nightly.ts', 'verify', '--all'],
    ['pipeline/nightly.ts', 'prune', '--dry-run'],
    ['pipeline/apps.ts', 'list'],
    ['pipeline/apps.ts', 'hide', '2299688', '--reason', 'test'],
    ['pipeline/query.ts', 'FROM latest_popular LIMIT 1'],
    ['api/commands/keys.ts', 'list'],
    ['api/commands/directories.ts', 'list'],
    ['api/commands/backup.ts', join(dataDir, 'backup')],
  ])('%s %s', async (program, ...args) => {
    writeFileSync(
      join(dataDir, 'usage.csv'),
      'ts,app_id,prompt_tokens,completion_tokens\n2026-08-30T01:00:00Z,2299688,1,1\n',
    )
    const { code, stderr } = await startReadOnly(program, args).ended
    expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
  })
})
