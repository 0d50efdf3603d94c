/**
 * A cluster that breaks the connection during a day: none of its rows reaches another day. A cluster that reveals its
 * password: the message to the operator does not.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../../../../../pipeline/config.ts'
import { runNightly } from '../../../../../pipeline/run.ts'
import { connectClickHouse } from '../../../../../pipeline/sources/clickhouse/client.ts'
import { countOf, rejectOf, startCounting } from '../../../../support/clickhouse/counting-clickhouse.ts'
import type { Question } from '../../../../support/clickhouse/counting-clickhouse.ts'
import { collectGarbage } from '../../../../support/garbage.ts'
import { fact, queryWarehouse, SILENT } from '../../../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../../../support/pipeline/nightly.ts'

const BROKEN = '2026-01-04'
const NEXT = '2026-01-05'

/** The limit allows one rejected row among a hundred. */
const ANSWERS = {
  [BROKEN]: {
    counts: [countOf(1, 100, 1000), countOf(2, 100, 500), countOf(null, 1, 0)],
    rejects: [rejectOf('of the broken day')],
  },
  [NEXT]: {
    counts: [countOf(1, 100, 7), countOf(3, 100, 9), countOf(null, 1, 0)],
    rejects: [rejectOf('of the next day')],
  },
}

const folders = new TemporaryFolders()
let cluster: Awaited<ReturnType<typeof startCounting>>

afterAll(() => folders.removeAll())

beforeEach(async () => {
  cluster = await startCounting(ANSWERS, collectGarbage)
})

afterEach(() => cluster.close())

const runAt = (dataDir: string, asOf: string) =>
  runNightly(readConfig({ DATA_DIR: dataDir, USAGE_SOURCE: cluster.address }), {
    now: () => new Date(asOf),
    progress: SILENT,
  })

it.each<Question>(['counts', 'rejects'])(
  'the %s that arrived before the break are in no other day, of that run or the next',
  async (question) => {
    const dataDir = folders.make()
    const apps = [1, 2, 3].map((id) => `${id},App ${id},public,2025-01-01\n`).join('')
    writeRaw(dataDir, 'apps/registry.csv', `app_id,app_name,visibility,updated_at\n${apps}`)
    cluster.script.breaking = { day: BROKEN, question }
    await expect(runAt(dataDir, '2026-01-06T02:00:00Z')).rejects.toThrow('cannot be counted')
    cluster.script.breaking = undefined
    await runAt(dataDir, '2026-01-06T03:00:00Z')
    expect(
      await queryCurrent(dataDir, 'SELECT day, app_id, requests, prompt_tokens FROM app_daily ORDER BY ALL'),
    ).toEqual([
      { day: BROKEN, app_id: '1', requests: '100', prompt_tokens: '1000' },
      { day: BROKEN, app_id: '2', requests: '100', prompt_tokens: '500' },
      { day: NEXT, app_id: '1', requests: '100', prompt_tokens: '7' },
      { day: NEXT, app_id: '3', requests: '100', prompt_tokens: '9' },
    ])
    expect(
      await queryWarehouse(
        dataDir,
        "SELECT day, payload ->> '$.request_id' AS request_id FROM quarantine ORDER BY day",
      ),
    ).toEqual([
      { day: BROKEN, request_id: 'of the broken day' },
      { day: NEXT, request_id: 'of the next day' },
    ])
  },
)

it('a day is counted again if a data part was rewritten with the same name and number of rows', async () => {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  await runAt(dataDir, '2026-01-06T02:00:00Z')
  expect(fact(await runAt(dataDir, '2026-01-06T03:00:00Z'), 'load', 'days_loaded')).toBe(0)
  cluster.script.modified = '2'
  expect(fact(await runAt(dataDir, '2026-01-06T04:00:00Z'), 'load', 'days_loaded')).toBe(2)
})

const PASSWORD = 's3cret-of-the-test'

/** Queries a cluster that gives the same answer to everything. */
async function ask(status: number, reply: string, row: z.ZodType): Promise<void> {
  const server = createServer((_, response) => response.writeHead(status).end(reply))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = z.object({ port: z.number() }).parse(server.address())
  const address = { user: 'reader', password: PASSWORD, database: 'default', table: 'usage' }
  const clickHouse = connectClickHouse({ ...address, cluster: undefined, url: `http://127.0.0.1:${port}` })
  try {
    await clickHouse.readAll('SELECT 1', row)
  } finally {
    await clickHouse.close()
    server.close()
  }
}

it('the password is not printed, even if the cluster sends it', async () => {
  const message = `Code: 516. DB::Exception: ${PASSWORD} is wrong. (AUTHENTICATION_FAILED)`
  await expect(ask(500, message, z.object({}))).rejects.toThrow(
    /cannot be counted: (?!.*s3cret).*\*\*\* is wrong/,
  )
})

it.each([
  {
    reply: 'Code: 47, e.displayText() = DB::Exception: Unknown identifier: x, e.what() = DB::Exception\n',
    message:
      'cannot be counted: Code: 47, DB::Exception: Unknown identifier: x. Nothing is published; run again',
  },
  {
    reply: 'Code: 279, e.displayText() = DB::NetException: All connection tries failed. Log: \n\nCode: 210',
    message: 'All connection tries failed. Nothing is published; run again when every shard answers',
  },
  {
    reply: 'Port 9000 is for clickhouse-client program.\r\nYou must use port 8123 for HTTP.\r\n',
    message: 'program. Nothing is published; run again when it is up; USAGE_SOURCE must name host and port',
  },
  {
    reply:
      "Code: 497. DB::Exception: reader: Not enough privileges. To execute this query, it's necessary to have the grant REMOTE ON *.*. (ACCESS_DENIED)",
    message: 'have the grant REMOTE ON *.*. Nothing is published; grant the user what it lacks',
  },
])('prints the message of the cluster and the remedy: $message', async ({ reply, message }) => {
  await expect(ask(500, reply, z.object({}))).rejects.toThrow(message)
})

it('a row of another shape is reported with its fault', async () => {
  await expect(ask(200, '{"row_count":7}\n', z.object({ row_count: z.string() }))).rejects.toThrow(
    'cannot be counted: it answered with a row of another shape: ✖ Invalid input: expected string, received number → at row_count. Nothing is published',
  )
})
