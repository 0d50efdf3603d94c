/**
 * CONTRACT 4.6: a client generated from openapi.json, for Java, whose types are strict, compiles, calls the service, and
 * loses no digits. The generator is no dependency of the project; API_CLIENTS names a folder with it, as .ci/run installs it.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { startApi } from '../../../support/api.ts'
import { makeFolder } from '../../../support/folders.ts'
import { LONG } from '../../../support/long.ts'
import { publishSnapshot } from '../../../support/pipeline/snapshot.ts'
import { hasFolder, hasProgram } from '../../../support/programs.ts'

const APP = 742_307_818_684_014
const REQUESTS = 6_000_000_000
const TOKENS = 2n ** 63n - 1n

const GENERATE = 'generate -i openapi.json -g java --library native -o .'.split(' ')
const COMPILE = ['-q', 'compile', 'dependency:copy-dependencies']

/** Prints the answers as JSON; the arguments are origin and key. */
const PROGRAM = `
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
}`

const canGenerate = hasFolder('API_CLIENTS') && hasProgram('mvn')

it.runIf(canGenerate)('a generated client compiles and keeps every digit', LONG, async () => {
  const dataDir = makeFolder()
  await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: '2026-11-19',
    apps: [{ id: APP, name: 'One', tags: ['cli-agent'] }],
    daily: [{ day: '2026-11-19', app: APP, requests: REQUESTS, tokens: TOKENS, completion: TOKENS }],
  })
  await using api = await startApi(dataDir)
  const folder = makeFolder('client')
  writeFileSync(join(folder, 'openapi.json'), await (await api.get('/openapi.json')).text())
  /** The output of a program in the folder, which must succeed; the service runs meanwhile. */
  const run = async (program: string, args: readonly string[]) =>
    (await promisify(execFile)(program, args, { cwd: folder, maxBuffer: 2 ** 26 })).stdout
  await run(join(String(process.env['API_CLIENTS']), 'venv/bin/openapi-generator-cli'), GENERATE)
  mkdirSync(join(folder, 'src/main/java'), { recursive: true })
  writeFileSync(join(folder, 'src/main/java/Main.java'), PROGRAM)
  await run('mvn', COMPILE)
  const call = ['-cp', 'target/classes:target/dependency/*', 'Main', api.origin, await api.makeKey()]
  expect(JSON.parse(await run('java', call))).toEqual({
    app: APP,
    requests: REQUESTS,
    tokens: String(2n * TOKENS),
    days: 30,
    code: 400,
    refused: true,
    through: '2026-11-19',
  })
})
