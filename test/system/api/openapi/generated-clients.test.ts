/**
 * Clients of three generators from openapi.json compile under strict rules and call the service. The generators are not
 * dependencies of the project; API_CLIENTS names a folder with the installed packages, as .ci/run sets it.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { Api } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../../support/processes.ts'
import { hasFolder } from '../../../support/programs.ts'
import { startSampleApi } from '../../../support/sample-api.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const packages = process.env['API_CLIENTS'] ?? ''

interface Client {
  /** Node arguments that create `generated/` from openapi.json in the working directory. */
  readonly generate: (origin: string) => readonly string[]
  /** Exports `callService(origin, key)`, which resolves to `Answers`. */
  readonly program: string
}

const CLIENTS: Readonly<Record<string, Client>> = {
  'openapi-typescript': {
    generate: () => [bin('openapi-typescript/bin/cli.js'), 'openapi.json', '-o', 'generated/api.ts'],
    program: `
      import createClient from 'openapi-fetch'
      import type { paths } from './generated/api'
      export async function callService(baseUrl: string, key: string) {
        const client = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${key}\` } })
        const path = '/api/v1/datasets/app-rankings'
        const { data } = await client.GET(path, { params: { query: { limit: 1, category: 'coding' } } })
        // The reply has several forms, CSV among them.
        if (typeof data === 'string') throw new Error('no JSON')
        const { data: series } = await client.GET('/api/v1/datasets/app-rankings/daily', {
          params: { query: { app_id: [data?.data[0]?.app_id ?? 0], limit: 1 } },
        })
        if (typeof series === 'string') throw new Error('no JSON')
        const { error, response } = await client.GET(path, { params: { query: { limit: 0 } } })
        const file = { params: { path: { id: 'latest', file: 'apps.parquet' } }, parseAs: 'blob' } as const
        const { data: parquet } = await client.GET('/api/v1/datasets/app-rankings/snapshots/{id}/{file}', file)
        const { data: status } = await client.GET('/api/v1/status')
        const tokens: string | undefined = data?.data[0]?.total_tokens
        const through: string | null | undefined = status?.data.data_through
        const refused: string | undefined = error?.error.message
        return { tokens, through, refused, code: response.status, days: series?.data.length, bytes: parquet?.size }
      }`,
  },
  '@hey-api/openapi-ts': {
    generate: () => [
      bin('@hey-api/openapi-ts/bin/run.js'),
      '-i',
      'openapi.json',
      '-o',
      'generated',
      '-c',
      '@hey-api/client-fetch',
    ],
    program: `
      import { getAppRankings, getAppSeries, getSnapshotFile, getStatus } from './generated/sdk.gen'
      import { client } from './generated/client.gen'
      export async function callService(baseUrl: string, key: string) {
        client.setConfig({ baseUrl, auth: () => key })
        const { data } = await getAppRankings({ query: { limit: 1, category: 'coding' } })
        const { data: series } = await getAppSeries({ query: { app_id: [data?.data[0]?.app_id ?? 0], limit: 1 } })
        const { error, response } = await getAppRankings({ query: { limit: 0 } })
        const { data: parquet } = await getSnapshotFile({ path: { id: 'latest', file: 'apps.parquet' }, parseAs: 'blob' })
        const { data: status } = await getStatus()
        const tokens: string | undefined = data?.data[0]?.total_tokens
        const through: string | null | undefined = status?.data.data_through
        const refused: string | undefined = error?.error.message
        const file: Blob | File | undefined = parquet
        return { tokens, through, refused, code: response?.status, days: series?.data.length, bytes: file?.size }
      }`,
  },
  orval: {
    generate: (baseUrl) => [
      '--input-type=module',
      '-e',
      `import { generate } from 'orval'
       await generate({ input: { target: './openapi.json' },
         output: { target: './generated/api.ts', client: 'fetch', baseUrl: '${baseUrl}' } })`,
    ],
    program: `
      import { getAppRankings, getAppSeries, getSnapshot, getStatus } from './generated/api'
      export async function callService(_origin: string, key: string) {
        const withKey = { headers: { Authorization: \`Bearer \${key}\` } }
        const rankings = await getAppRankings({ limit: 1, category: 'coding' }, withKey)
        if (rankings.status !== 200) throw new Error(String(rankings.status))
        if (typeof rankings.data === 'string' || rankings.data instanceof Blob) throw new Error('no JSON')
        const [first] = rankings.data.data
        const series = await getAppSeries({ app_id: [first?.app_id ?? 0], limit: 1 }, withKey)
        const refusal = await getAppRankings({ limit: 0 }, withKey)
        const status = await getStatus()
        // It takes every body for JSON, so files are not for it.
        const snapshot = await getSnapshot('latest')
        const bytes = snapshot.status === 200 ? snapshot.data.data.files[0]?.bytes : undefined
        const tokens: string | undefined = first?.total_tokens
        const through: string | null | undefined = status.status === 200 ? status.data.data.data_through : undefined
        const refused: string | undefined = refusal.status === 400 ? refusal.data.error.message : undefined
        if (series.status !== 200) throw new Error(String(series.status))
        if (typeof series.data === 'string' || series.data instanceof Blob) throw new Error('no JSON')
        const days = series.data.data.length
        return { tokens, through, refused, code: refusal.status, days, bytes }
      }`,
  },
}

function bin(path: string): string {
  return join(packages, 'node_modules', path)
}

const OPTIONS = {
  strict: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  module: 'esnext',
  moduleResolution: 'bundler',
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  types: [],
}

const moduleSchema = z.object({
  callService: z.custom<(origin: string, key: string) => Promise<unknown>>(
    (value) => typeof value === 'function',
  ),
})

describe.runIf(hasFolder('API_CLIENTS'))('a client made by', () => {
  const folders = new TemporaryFolders()
  const made: string[] = []
  let api: Api

  beforeAll(async () => {
    api = await startSampleApi(folders.make())
  })

  afterAll(async () => {
    await api.close()
    folders.removeAll()
    for (const folder of made) rmSync(folder, { recursive: true })
  })

  /** Runs a Node program in a folder; resolves to its output if it fails. */
  function faultsOf(cwd: string, args: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8' })
    return status === 0 ? '' : `${stdout}${stderr}`
  }

  it.each(Object.keys(CLIENTS))('%s compiles and calls the service', async (name) => {
    const { generate, program } = CLIENTS[name] ?? { generate: () => [], program: '' }
    // Beside the packages, so that generated code finds them.
    const folder = mkdtempSync(join(packages, 'client-'))
    made.push(folder)
    const document = await (await api.get('/openapi.json')).text()
    writeFileSync(join(folder, 'openapi.json'), document)
    expect(faultsOf(folder, generate(api.origin))).toBe('')
    writeFileSync(join(folder, 'client.ts'), program)
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: OPTIONS, files: ['client.ts'] }),
    )
    expect(faultsOf(folder, [join(REPOSITORY, 'node_modules/typescript/bin/tsc'), '-p', '.'])).toBe('')
    const { callService } = moduleSchema.parse(await import(pathToFileURL(join(folder, 'client.ts')).href))
    expect(await callService(api.origin, await api.makeKey())).toEqual({
      tokens: expect.stringMatching(/^\d+$/),
      through: '2026-08-31',
      refused: expect.stringContaining('limit'),
      code: 400,
      days: 1,
      bytes: expect.any(Number),
    })
  })
})
