/**
 * CONTRACT 4.6: clients generated from openapi.json compile under strict rules, call the service, and lose no digits. The
 * generators are not dependencies of the project; API_CLIENTS names a folder with them, as .ci/run installs them.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApi, type Api } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../../support/pipeline/snapshot.ts'
import { REPOSITORY } from '../../../support/processes.ts'
import { findProgram, hasFolder } from '../../../support/programs.ts'

const packages = process.env['API_CLIENTS'] ?? ''
const module = (path: string) => join(packages, 'node_modules', path)
const python = (program: string) => join(packages, 'venv/bin', program)
const TSC = join(REPOSITORY, 'node_modules/typescript/bin/tsc')

const APP = 742_307_818_684_014
const REQUESTS = 6_000_000_000
const TOKENS = 2n ** 63n - 1n

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noUncheckedIndexedAccess: true,
    outDir: 'out',
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.iterable'],
    types: ['node'],
    typeRoots: [join(REPOSITORY, 'node_modules/@types')],
  },
  files: ['client.ts'],
}

type Command = readonly [program: string, ...args: string[]]

interface Client {
  readonly needs?: string
  /** Further files by name; a program prints the answers as JSON, from the arguments origin and key. */
  readonly files: Readonly<Record<string, string>>
  /** Commands in the folder with openapi.json. */
  readonly generate: Command
  readonly compile: readonly Command[]
  readonly call: Command
}

const CLIENTS: Readonly<Record<string, Client>> = {
  'openapi-typescript': {
    files: {
      'client.ts': `
import createClient from 'openapi-fetch'
import type { paths } from './generated/api'
void (async () => {
  const [, , baseUrl = '', key = ''] = process.argv
  const client = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${key}\` } })
  const path = '/api/v1/datasets/app-rankings'
  const { data } = await client.GET(path, { params: { query: { limit: 1, category: 'coding' } } })
  // The reply has several forms, CSV among them.
  if (data === undefined || typeof data === 'string') throw new Error('no JSON')
  const row = data.data[0]
  const { data: series } = await client.GET(\`\${path}/daily\`, { params: { query: { app_id: [row?.app_id ?? 0] } } })
  if (series === undefined || typeof series === 'string') throw new Error('no JSON')
  const { error, response } = await client.GET(path, { params: { query: { limit: 0 } } })
  const { data: status } = await client.GET('/api/v1/status')
  const tokens: string | undefined = row?.total_tokens
  const refused: string | undefined = error?.error.message
  console.log(JSON.stringify({ app: row?.app_id, requests: row?.total_requests, tokens, days: series.data.length,
    code: response.status, refused: refused?.includes('limit'), through: status?.data.data_through }))
})()`,
      'tsconfig.json': JSON.stringify(TSCONFIG),
    },
    generate: [
      process.execPath,
      module('openapi-typescript/bin/cli.js'),
      ...'openapi.json -o generated/api.ts'.split(' '),
    ],
    compile: [[process.execPath, TSC, '-p', '.']],
    call: [process.execPath, 'out/client.js'],
  },
  'openapi-generator for Java': {
    needs: 'mvn',
    files: {
      'src/main/java/Main.java': `
import java.util.List;
import org.openapitools.client.*;
import org.openapitools.client.api.DatasetApi;
public class Main {
  public static void main(String[] args) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(args[0]);
    client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + args[1]));
    DatasetApi api = new DatasetApi(client);
    var row = api.getAppRankings("coding", null, null, null, null, 1L, null, null, "json").getData().get(0);
    var series = api.getAppSeries(List.of(row.getAppId()), null, null, null, null, null, "json").getData();
    int code = 0;
    boolean refused = false;
    try {
      api.getAppRankings(null, null, null, null, null, 0L, null, null, "json");
    } catch (ApiException error) {
      code = error.getCode();
      refused = error.getResponseBody().contains("limit");
    }
    System.out.printf("{\\"app\\":%d,\\"requests\\":%d,\\"tokens\\":\\"%s\\",\\"days\\":%d,\\"code\\":%d,\\"refused\\":%b,\\"through\\":\\"%s\\"}",
      row.getAppId(), row.getTotalRequests(), row.getTotalTokens(), series.size(), code, refused,
      api.getStatus().getData().getDataThrough());
  }
}`,
    },
    generate: [
      python('openapi-generator-cli'),
      ...'generate -i openapi.json -g java --library native -o .'.split(' '),
    ],
    compile: [['mvn', '-q', 'compile', 'dependency:copy-dependencies']],
    call: ['java', '-cp', 'target/classes:target/dependency/*', 'Main'],
  },
}

describe.runIf(hasFolder('API_CLIENTS'))('a client made by', () => {
  const folders = new TemporaryFolders()
  const made: string[] = []
  let api: Api

  beforeAll(async () => {
    const dataDir = folders.make()
    await publishSnapshot(dataDir, {
      asOf: new Date('2026-11-20T02:00:00Z'),
      dataThrough: '2026-11-19',
      apps: [{ id: APP, name: 'One', tags: ['cli-agent'] }],
      daily: [{ day: '2026-11-19', app: APP, requests: REQUESTS, tokens: TOKENS, completion: TOKENS }],
    })
    api = await startApi(dataDir)
  })

  afterAll(async () => {
    await api.close()
    folders.removeAll()
    for (const folder of made) rmSync(folder, { recursive: true })
  })

  /** The output of a program in a folder, which must succeed; the service runs meanwhile. */
  async function run(cwd: string, [program, ...args]: Command): Promise<string> {
    return (await promisify(execFile)(program, args, { cwd, maxBuffer: 2 ** 26 })).stdout
  }

  it.each(Object.entries(CLIENTS))(
    '%s compiles, calls the service and keeps every digit',
    async (_name, client) => {
      if (client.needs !== undefined && findProgram(client.needs) === undefined) return
      // Beside the packages, so that generated code finds them.
      const folder = mkdtempSync(join(packages, 'client-'))
      made.push(folder)
      writeFileSync(join(folder, 'openapi.json'), await (await api.get('/openapi.json')).text())
      await run(folder, client.generate)
      for (const [name, text] of Object.entries(client.files)) {
        mkdirSync(dirname(join(folder, name)), { recursive: true })
        writeFileSync(join(folder, name), text)
      }
      for (const command of client.compile) await run(folder, command)
      const key = await api.makeKey('inference', crypto.randomUUID())
      const answers = await run(folder, [...client.call, api.origin, key])
      expect(JSON.parse(answers)).toEqual({
        app: APP,
        requests: REQUESTS,
        tokens: String(2n * TOKENS),
        days: 30,
        code: 400,
        refused: true,
        through: '2026-11-19',
      })
    },
  )
})
