/** CONTRACT 10: a run pulls the changed days of a ClickHouse cluster, and publishes what the same rows in files give. */
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nightly } from '../../../../pipeline/nightly.ts'
import { until } from '../../../support/api.ts'
import { PASSWORD, hasClickHouse, startCluster } from '../../../support/clickhouse.ts'
import type { ClickHouseCluster } from '../../../support/clickhouse.ts'
import { makeFolder } from '../../../support/folders.ts'
import { LONG } from '../../../support/long.ts'
import { SILENT } from '../../../support/pipeline/in-process.ts'
import {
  currentSnapshot,
  publish,
  queryCurrent,
  register,
  writeRaw,
} from '../../../support/pipeline/nightly.ts'
import { listen } from '../../../support/ports.ts'
import { runCommandLine, startProgram } from '../../../support/processes.ts'
import { findProgram } from '../../../support/programs.ts'

const DAY = '2026-10-01'
const NIGHT = '2026-10-02T02:00:00Z'
const TABLES = ['app_daily', 'model_daily', 'apps', 'rankings']

const COLUMNS =
  'ts,app_id,app,prompt_tokens,completion_tokens,requests,request_id,model,account_id,app_title,cached_tokens'
/** The sharding decides which server has a row. */
const INSERT = `INSERT INTO usage (${COLUMNS}) SETTINGS distributed_foreground_insert = 1`

/** Rows of two days; their ids are few enough to repeat, often on different shards and in different apps. */
function drawnRows(seed: number): string {
  const draw = (column: number, of: number) => `cityHash64(number, ${seed}, ${column}) % ${of}`
  const oneOf = (column: number, ...texts: readonly string[]) =>
    `arrayElement(['${texts.join("','")}'], 1 + ${draw(column, texts.length)})`
  // Both counts are unknown, or none is.
  const tokens = (column: number) => `if(${draw(4, 20)} = 0, NULL, ${draw(column, 5000)})`
  return `${INSERT} SELECT
    toDateTime('2026-09-30 00:00:00', 'UTC') + ${draw(0, 172_800)},
    if(${draw(1, 2)} = 0, 1 + ${draw(2, 30)}, NULL),
    if(${draw(1, 2)} = 0, '', concat('https://app-', toString(1 + ${draw(3, 9)}), '.example')),
    ${tokens(5)}, ${tokens(6)}, if(${draw(7, 6)} = 0, NULL, ${draw(8, 10)}),
    if(${draw(9, 2)} = 0, '', concat('r', toString(1 + ${draw(10, 900)}))),
    ${oneOf(11, '', 'acme/one', 'acme/two:free', 'no model')}, ${oneOf(12, '', 'one', 'two')},
    ${oneOf(13, '', 'Writer', 'Painter')}, toInt64OrNull(${oneOf(14, 'NULL', '0', '1', '2000', '-5')})
    FROM numbers(3000)`
}

/** Invalid rows, few enough to be allowed. */
const REJECTED = `${INSERT} VALUES
  ('${DAY} 10:00:01', 1, '', -5, 5, NULL, '', '', '', '', NULL), ('${DAY} 10:00:02', 1, '', NULL, 5, 1, '', '', '', '', NULL),
  ('${DAY} 10:00:03', 1, '', 5, 5, -1, 'r1', '', '', '', NULL), ('${DAY} 10:00:04', -3, '', 5, 5, 1, '', '', '', '', NULL)`

/** The rows of a day as the file that ClickHouse itself writes. */
const asCsv = (day: string) => `SELECT ${COLUMNS} FROM usage WHERE toDate(ts) = '${day}'
  SETTINGS format_csv_null_representation = '' FORMAT CSVWithNames`

/** Rows of three apps, 7 seconds apart. */
function plainRows(table: string, rows: number, offset = 0): string {
  return `INSERT INTO ${table} (ts, app_id, prompt_tokens, completion_tokens, request_id)
    SETTINGS distributed_foreground_insert = 1 SELECT toDateTime('${DAY} 00:00:00', 'UTC') + number * 7, 1 + number % 3, 10, 5, concat('r', toString(number))
    FROM numbers(${offset}, ${rows})`
}

function newTable(name: string, settings = ''): string {
  return `CREATE TABLE ${name} AS usage_rows ENGINE = MergeTree PARTITION BY toYYYYMMDD(ts) ORDER BY (ts, request_id) ${settings}`
}

/** Some apps are hidden, some are aliases. */
const REGISTRY = Array.from({ length: 30 }, (_, index) => {
  const visibility = index % 9 === 8 ? 'hidden' : 'public'
  return `${index + 1},App ${index + 1},${visibility},cli-agent,${index % 7 === 6 ? index : ''},2025-01-01`
})

describe.runIf(hasClickHouse).each(['24.8', '26.7'] as const)('two shards of version %s', (version) => {
  let cluster: ClickHouseCluster

  beforeAll(async () => {
    cluster = await startCluster(version)
  }, LONG.timeout)

  afterAll(() => cluster.remove())

  const newFolder = () => {
    const dataDir = makeFolder()
    register(dataDir, REGISTRY)
    return dataDir
  }
  const night = (dataDir: string, source: string, ...args: readonly string[]) =>
    runCommandLine((line) => nightly(line, { ...SILENT, note: line.note }), args, {
      DATA_DIR: dataDir,
      USAGE_SOURCE: source,
    })
  const run = (dataDir: string, source: string, asOf = NIGHT, ...args: readonly string[]) =>
    night(dataDir, source, 'run', '--as-of', asOf, ...args)
  const requestsOf = async (dataDir: string) =>
    (await queryCurrent(dataDir, 'SELECT sum(requests) AS requests FROM app_daily'))[0]?.['requests']

  it.each(version === '24.8' ? [1, 2, 3] : [4, 5, 6])(
    'random rows give the tables that they give in files, seed %i',
    async (seed) => {
      const [asFiles, pulled] = [newFolder(), newFolder()]
      await cluster.runOnShards('TRUNCATE TABLE usage_rows SYNC')
      for (const insert of [drawnRows(seed), REJECTED]) await cluster.run(insert)
      for (const day of ['2026-09-30', DAY])
        writeRaw(asFiles, `usage/date=${day}/rows.csv`, await cluster.run(asCsv(day)))
      await publish(asFiles, NIGHT)
      expect(await run(pulled, cluster.source('usage', 'puller'))).toMatchObject({ code: 0 })
      for (const table of TABLES)
        expect(await queryCurrent(pulled, `FROM ${table} ORDER BY ALL`), table).toEqual(
          await queryCurrent(asFiles, `FROM ${table} ORDER BY ALL`),
        )
      const month = join('app_daily', 'month=2026-10.parquet')
      expect(readFileSync(join(currentSnapshot(pulled), month))).toEqual(
        readFileSync(join(currentSnapshot(asFiles), month)),
      )
      expect((await night(pulled, cluster.source('usage'), 'quarantine', DAY)).stdout.split('\n')).toEqual(
        expect.arrayContaining([expect.stringContaining('cluster.parquet')]),
      )
    },
  )

  it('a merge changes nothing; updates and later rows are pulled; a dropped day stays', LONG, async () => {
    const dataDir = newFolder()
    const changeable = 'SETTINGS enable_block_number_column = 1, enable_block_offset_column = 1'
    await cluster.run(newTable('changing', changeable))
    await cluster.run(plainRows('changing', 300))
    await cluster.run(plainRows('changing', 300, 300))
    const source = cluster.source('changing')
    await run(dataDir, source)
    expect(await requestsOf(dataDir)).toBe('600')
    await cluster.run('OPTIMIZE TABLE changing FINAL')
    expect((await night(dataDir, source, 'plan')).stdout).not.toContain('pull')
    const changes = [
      // A lightweight update, which 24.8 does not have.
      version === '24.8'
        ? ['ALTER TABLE changing UPDATE requests = 3 WHERE app_id = 1 SETTINGS mutations_sync = 2', '1000']
        : ['UPDATE changing SET requests = 3 WHERE app_id = 1', '1000'],
      ["DELETE FROM changing WHERE request_id = 'r1'", '999'],
      ['ALTER TABLE changing UPDATE requests = 2 WHERE 1 SETTINGS mutations_sync = 2', '1198'],
      [plainRows('changing', 100, 600), '1298'],
      ['ALTER TABLE changing DROP PARTITION 20261001', '1298'],
      ['SELECT 1', '1298'],
    ] as const
    const notes: string[] = []
    for (const [index, [statement, requests]] of changes.entries()) {
      await cluster.run(statement)
      notes.push((await run(dataDir, source, `2026-10-02T0${3 + index}:00:00Z`, '--accept', 'rows')).stderr)
      expect(await requestsOf(dataDir), statement).toBe(requests)
    }
    // Said once.
    expect(notes.map((note) => note.includes('no longer has the partitions 20261001'))).toEqual(
      changes.map(([statement]) => statement.includes('DROP PARTITION')),
    )
  })

  it('the rest of a mutation is pulled by the next run, and nothing after a merge', LONG, async () => {
    await cluster.run('CREATE TABLE gate (is_open Int8) ENGINE = MergeTree ORDER BY is_open')
    await cluster.run(newTable('mutating', 'SETTINGS max_bytes_to_merge_at_max_space_in_pool = 1'))
    for (const offset of [0, 300]) await cluster.run(plainRows('mutating', 300, offset))
    // The second part is mutated once the gate has a row.
    await cluster.run(`ALTER TABLE mutating UPDATE requests = 3
      WHERE throwIf(request_id = 'r599' AND (SELECT count() FROM gate) = 0) = 0 SETTINGS allow_nondeterministic_mutations = 1, mutations_sync = 0`)
    const untilMutated = (rows: string) =>
      until(async () => (await cluster.run('SELECT countIf(requests = 3) FROM mutating')).trim() === rows)
    await untilMutated('300')
    const dataDir = newFolder()
    await run(dataDir, cluster.source('mutating'))
    expect(await requestsOf(dataDir)).toBe('1200')
    await cluster.run('INSERT INTO gate VALUES (1)')
    await untilMutated('600')
    await run(dataDir, cluster.source('mutating'), '2026-10-02T03:00:00Z', '--accept', 'rows')
    expect(await requestsOf(dataDir)).toBe('1800')

    await cluster.run(plainRows('mutating', 100, 600))
    await run(dataDir, cluster.source('mutating'), '2026-10-02T04:00:00Z')
    await cluster.run('OPTIMIZE TABLE mutating FINAL')
    const { stdout } = await night(dataDir, cluster.source('mutating'), 'plan')
    expect(stdout, 'a merge of mutated rows and later ones').not.toContain('pull')
    expect(await requestsOf(dataDir)).toBe('1900')
  })

  /** A table with 300 rows behind an address that does `work` after each query, before it answers. */
  async function interrupted(
    table: string,
    work: (sql: string) => Promise<unknown>,
    tls?: { readonly key: Buffer; readonly cert: Buffer },
  ) {
    await cluster.run(`DROP TABLE IF EXISTS ${table} SYNC`)
    await cluster.run(newTable(table))
    await cluster.run(plainRows(table, 300))
    const serve: RequestListener = (request, response) => {
      void (async () => {
        const sql = await text(request)
        const { authorization = '' } = request.headers
        const url = `http://${cluster.hosts[0]}${request.url}`
        const answer = await fetch(url, { method: 'POST', body: sql, headers: { authorization } })
        const body = Buffer.from(await answer.arrayBuffer())
        await work(sql)
        response.writeHead(answer.status).end(body)
      })()
    }
    const proxy = tls === undefined ? createServer(serve) : createSecureServer(tls, serve)
    const { port } = await listen(proxy)
    return cluster.source(table).replace(cluster.hosts[0], `127.0.0.1:${port}`)
  }

  it.each(['_partition_id =', 'AND is_summed', 'AND NOT is_summed'])(
    'rows that arrive after the query with "%s" are all in the snapshot or all in the next',
    async (words) => {
      const dataDir = newFolder()
      let isLate = false
      const racing = await interrupted('racing', async (sql) => {
        if (!sql.includes(words) || isLate) return
        isLate = true
        // Half of them repeat ids that were there.
        await cluster.run(plainRows('racing', 300, 150))
      })
      await run(dataDir, racing)
      expect(isLate).toBe(true)
      expect(['300', '450']).toContain(await requestsOf(dataDir))
      await run(dataDir, racing, '2026-10-02T03:00:00Z')
      expect(await requestsOf(dataDir)).toBe('450')
    },
  )

  it('rows of the present day may arrive all the time, and are pulled when it is over', async () => {
    const dataDir = newFolder()
    let arrived = 0
    let isOver = false
    const live = await interrupted('live', async () => {
      if (isOver) return
      arrived += 1
      // 7 seconds a row: the next day begins after 12,343 rows.
      await cluster.run(plainRows('live', 1, 12_400 + arrived))
    })
    await cluster.run(plainRows('live', 1, 12_400))
    expect(await run(dataDir, live)).toMatchObject({ code: 0 })
    expect(arrived).toBeGreaterThan(3)
    expect(await requestsOf(dataDir)).toBe('300')
    isOver = true
    await run(dataDir, live, '2026-10-03T02:00:00Z')
    expect(await requestsOf(dataDir)).toBe(String(301 + arrived))
  })

  it.runIf(findProgram('openssl') !== undefined)('is pulled by https with a private authority', async () => {
    const [key, certificate] = [join(makeFolder(), 'key.pem'), join(makeFolder(), 'cert.pem')]
    const request = 'req -x509 -newkey rsa:2048 -nodes -subj /CN=cluster -addext subjectAltName=IP:127.0.0.1'
    const files = ['-keyout', key, '-out', certificate]
    execFileSync('openssl', [...request.split(' '), ...files], { stdio: 'ignore' })
    const tls = { key: readFileSync(key), cert: readFileSync(certificate) }
    const dataDir = newFolder()
    const source = `${await interrupted('secure', async () => undefined, tls)}&tls=1`
    // An authority that nobody knows is none.
    const stranger = await run(dataDir, source)
    expect(stranger).toMatchObject({ code: 1, stderr: expect.stringContaining('certificate') })
    const environment = { DATA_DIR: dataDir, USAGE_SOURCE: source, NODE_EXTRA_CA_CERTS: certificate }
    const program = startProgram('pipeline/nightly.ts', ['run', '--as-of', NIGHT], environment)
    expect(await program.ended).toMatchObject({ code: 0 })
    expect(await requestsOf(dataDir)).toBe('300')
  })

  it('a run that is stopped ends its query', async () => {
    // A tenth of a second for each row: ten minutes in all.
    await cluster.run(`CREATE TABLE slow (
      ts DateTime('UTC'), app String ALIAS toString(sleepEachRow(0.1)), prompt_tokens Int64, completion_tokens Int64
    ) ENGINE = MergeTree PARTITION BY toYYYYMMDD(ts) ORDER BY ts SETTINGS index_granularity = 1`)
    await cluster.run(`INSERT INTO slow SELECT toDateTime('${DAY} 00:00:00', 'UTC'), 1, 1 FROM numbers(6000)`)
    const isRunning = async () =>
      (await cluster.run(
        "SELECT 1 FROM system.processes WHERE user = 'slow' AND query LIKE '%is_plain%'",
      )) !== ''
    const environment = { DATA_DIR: newFolder(), USAGE_SOURCE: cluster.source('slow', 'slow') }
    const program = startProgram('pipeline/nightly.ts', ['run', '--as-of', NIGHT], environment)
    await until(isRunning)
    expect(await program.stop()).toMatchObject({ signal: 'SIGTERM' })
    await until(async () => !(await isRunning()))
  })

  it('a replica that lags behind fails the run, and the one with all rows is published', async () => {
    await cluster.runOnShards(newTable('lagging_rows'))
    await cluster.runOnShards(
      "CREATE TABLE lagging AS usage_rows ENGINE = Distributed('replicated', default, lagging_rows, rand())",
    )
    await cluster.runOnShards(plainRows('lagging_rows', 100))
    const later = plainRows('lagging_rows', 200, 100)
    await cluster.run(later)
    // Each server reads its own replica.
    const [ahead, behind] = cluster.hosts
    const dataDir = newFolder()
    const source = cluster.source('lagging')
    const failed = await run(dataDir, source.replace(ahead, behind))
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('a replica lags behind') })
    expect(existsSync(join(dataDir, 'current'))).toBe(false)
    expect(await run(dataDir, source)).toMatchObject({ code: 0 })
    expect(await requestsOf(dataDir)).toBe('300')

    const runBehind = (hour: number) =>
      run(dataDir, source.replace(ahead, behind), `2026-10-02T0${hour}:00:00Z`, '--accept', 'rows')
    await cluster.runOnSecond(later)
    const mutation = 'ALTER TABLE lagging_rows UPDATE requests = 2 WHERE 1 SETTINGS mutations_sync = 2'
    await cluster.run(mutation)
    await runBehind(3)
    expect(await requestsOf(dataDir)).toBe('300')
    await cluster.runOnSecond(mutation)
    await runBehind(4)
    expect(await requestsOf(dataDir), 'a mutation that a replica did later').toBe('600')
  })

  it.each([
    ['partitions by month', 'MergeTree PARTITION BY toYYYYMM(ts) ORDER BY ts'],
    ['a cluster named by a macro', "Distributed('{cluster}', default, usage_rows, rand())"],
    ['a cluster with a hyphen', "Distributed('prod-eu', default, usage_rows, rand())"],
  ])('a table of any name with %s is pulled day by day', async (_, engine) => {
    await cluster.runOnShards('DROP TABLE IF EXISTS `any-name` SYNC')
    await cluster.runOnShards('TRUNCATE TABLE usage_rows SYNC')
    await cluster.runOnShards(`CREATE TABLE \`any-name\` AS usage_rows ENGINE = ${engine}`)
    await cluster.run(plainRows('`any-name`', 20_000))
    const dataDir = newFolder()
    await run(dataDir, cluster.source('any-name'), '2026-10-05T02:00:00Z')
    expect(await queryCurrent(dataDir, 'SELECT DISTINCT day FROM app_daily ORDER BY day')).toEqual([
      { day: DAY },
      { day: '2026-10-02' },
    ])
  })

  describe('nothing is published, and the message has the reason without the password', () => {
    const faults: readonly (readonly [
      fault: string,
      user: string,
      reason: string,
      table: string,
      ...statements: string[],
    ])[] = [
      [
        'a shard does not answer',
        'pipeline',
        '(ALL_REPLICAS_ARE_STALE)',
        'halved',
        "CREATE TABLE halved AS usage_rows ENGINE = Distributed('broken', default, usage_rows, rand())",
      ],
      [
        'a limit of the profile would cut the result',
        'cut',
        '(TOO_MANY_ROWS)',
        'many',
        newTable('many'),
        plainRows('many', 5_000),
      ],
      ['the user is unknown, or the password wrong', 'stranger', '(AUTHENTICATION_FAILED)', 'usage'],
      ['there is no such table', 'pipeline', '(UNKNOWN_TABLE)', 'nowhere'],
      [
        'a column is missing',
        'pipeline',
        'has no column completion_tokens',
        'wrong',
        "CREATE TABLE wrong (ts DateTime('UTC'), app_id Int64, prompt_tokens Int64) ENGINE = MergeTree ORDER BY ts",
      ],
      [
        'too many rows may be invalid',
        'pipeline',
        'AND NOT is_plain',
        'odd',
        newTable('odd'),
        `INSERT INTO odd (ts, prompt_tokens, completion_tokens)
         SELECT toDateTime('${DAY} 00:00:00', 'UTC'), 1, 1 FROM numbers(100001)`,
      ],
      [
        'the table is a view',
        'pipeline',
        'has rows, but no parts',
        'seen',
        newTable('behind'),
        plainRows('behind', 3),
        'CREATE VIEW seen AS SELECT * FROM behind',
      ],
    ]

    it.each(faults)('%s', async (_fault, user, reason, ...[table = '', ...statements]) => {
      for (const statement of statements) await cluster.run(statement)
      const dataDir = newFolder()
      const { code, stderr } = await run(dataDir, cluster.source(table, user))
      expect(code).toBe(1)
      expect(stderr).toContain(reason)
      expect(stderr).not.toContain(PASSWORD)
      expect(existsSync(join(dataDir, 'current'))).toBe(false)
    })
  })
})
