/**
 * A ClickHouse cluster for one test file: two servers on loopback, a shard each. The engines are libraries in the folder
 * CLICKHOUSE, which Python runs as servers: 24.8 is in the package chdb 2.1.1 of PyPI, 26.7 in @chdb/lib-linux-x64-gnu of npm.
 */
import { globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './api.ts'
import { makeFolder } from './folders.ts'
import { freePort } from './ports.ts'
import { startProcess, textOf, type Started } from './processes.ts'
import { findProgram, hasFolder } from './programs.ts'

/** Its last letter is beyond Latin-1, which a header cannot hold. */
export const PASSWORD = 's3cret-of-the-test-€'

/** Whether the tests of a cluster can run here. */
export const hasClickHouse = hasFolder('CLICKHOUSE') && findProgram('python3') !== undefined

export type ClickHouseCluster = Awaited<ReturnType<typeof startCluster>>

type Server = { readonly http: number; readonly tcp: number; readonly folder: string }

/** Users by their profile; `puller` has the rights that data/clickhouse.sql lists and may change no setting. */
const USERS = {
  pipeline: '',
  puller: '<readonly>1</readonly>',
  slow: '<max_block_size>1</max_block_size>',
  cut: '<max_rows_to_read>1000</max_rows_to_read><read_overflow_mode>break</read_overflow_mode>',
} as const

/** The C function that starts a server in each version's library, and its arguments beside the configuration. */
const ENGINES = {
  '24.8': { library: 'chdb/_chdb*.so', main: '_Z25mainEntryClickHouseServeriPPc', options: [] },
  // clickhouse-local, which listens until it is killed.
  '26.7': {
    library: 'node_modules/@chdb/lib-linux-x64-gnu/libchdb.so',
    main: 'query_stable_v2',
    options: [
      '--path=data',
      '--query=SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; ' +
        'SELECT sleepEachRow(1) FROM numbers(1000000) FORMAT Null SETTINGS max_block_size = 1',
    ],
  },
} as const

const SERVE = `
import ctypes, sys
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
arguments = [b'clickhouse'] + [argument.encode() for argument in sys.argv[3:]]
main = getattr(library, sys.argv[2])
main.restype = ctypes.c_void_p
main(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))`

/** Starts both servers and makes the tables of data/clickhouse.sql on them. */
export async function startCluster(version: keyof typeof ENGINES) {
  const newServer = async (): Promise<Server> => ({
    http: await freePort(),
    tcp: await freePort(),
    folder: makeFolder(),
  })
  const servers = [await newServer(), await newServer()] as const
  const processes = servers.map((server) => startServer(version, server, servers))
  const [first, second] = servers
  for (const [index, { http }] of servers.entries()) {
    await until(() => {
      if (processes[index]?.child.exitCode !== null)
        throw new Error('The ClickHouse server ended at its start')
      return ask(http, 'SELECT 1').catch(() => undefined)
    })
  }
  const runOnShards = async (sql: string) => {
    for (const { http } of servers) await ask(http, sql)
  }
  for (const statement of tableStatements()) await runOnShards(statement)
  return {
    /** Host and port of the HTTP interface of each server. */
    hosts: [`127.0.0.1:${first.http}`, `127.0.0.1:${second.http}`] as const,
    /** The value of USAGE_SOURCE for a table, as a user of USERS or an unknown one. */
    source: (table: string, user = 'pipeline') =>
      `clickhouse://${user}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${first.http}/default?table=${table}`,
    run: (sql: string) => ask(first.http, sql),
    runOnSecond: (sql: string) => ask(second.http, sql),
    runOnShards,
    remove: () => Promise.all(processes.map((process) => process[Symbol.asyncDispose]())),
  }
}

async function ask(port: number, sql: string): Promise<string> {
  const address = `http://127.0.0.1:${port}/?user=pipeline&password=${encodeURIComponent(PASSWORD)}`
  const response = await fetch(address, { method: 'POST', body: sql })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return text
}

const TABLES_FILE = 'data/clickhouse.sql'

function tableStatements(): string[] {
  const text = textOf(TABLES_FILE).replaceAll(/^--.*$/gm, '')
  return text.split(';').filter((statement) => statement.trim() !== '')
}

/** The rights that data/clickhouse.sql lists. */
function grants(): string {
  const queries = [...textOf(TABLES_FILE).matchAll(/^-- (GRANT .*) TO pipeline;$/gm)].map(
    ([, grant = '']) => `<query>${grant.replace(/ON (\w+)$/, 'ON default.$1')}</query>`,
  )
  return `<grants>${queries.join('')}</grants>`
}

function startServer(version: keyof typeof ENGINES, server: Server, servers: readonly Server[]): Started {
  const { folder } = server
  writeFileSync(join(folder, 'config.xml'), configuration(server, servers))
  writeFileSync(join(folder, 'users.xml'), users())
  const { library, main, options } = ENGINES[version]
  const libraries = globSync(join(process.env['CLICKHOUSE'] ?? '', library))
  const serve = ['python3', '-c', SERVE, ...libraries, main, '--config-file=config.xml', ...options]
  const environment = { TZ: 'UTC', CLICKHOUSE_WATCHDOG_ENABLE: '0' }
  return startProcess('env', ['-C', folder, ...serve], { environment })
}

function configuration({ folder, ...ports }: Server, servers: readonly Server[]): string {
  const replica = (port: number) =>
    `<replica><host>127.0.0.1</host><port>${port}</port><user>pipeline</user><password>${PASSWORD}</password></replica>`
  const shard = (inner: string) => `<shard>${inner}</shard>`
  const replicas = servers.map(({ tcp }) => replica(tcp))
  return `<clickhouse>
    <logger><level>none</level></logger>
    <listen_host>127.0.0.1</listen_host>
    <http_port>${ports.http}</http_port>
    <tcp_port>${ports.tcp}</tcp_port>
    <path>${folder}/data/</path>
    <tmp_path>${folder}/data/tmp/</tmp_path>
    <users_config>${folder}/users.xml</users_config>
    <user_directories><users_xml><path>${folder}/users.xml</path></users_xml></user_directories>
    <default_profile>default</default_profile>
    <default_database>default</default_database>
    <timezone>UTC</timezone>
    <mark_cache_size>67108864</mark_cache_size>
    <macros><cluster>prod-eu</cluster></macros>
    <remote_servers replace="true">
      <production>${replicas.map(shard).join('')}</production>
      <prod-eu>${replicas.map(shard).join('')}</prod-eu>
      <replicated>${shard(replicas.join(''))}</replicated>
      <broken>${shard(replicas[0] ?? '')}${shard(replica(1))}</broken>
    </remote_servers>
  </clickhouse>`
}

function users(): string {
  const entries = Object.entries(USERS)
  const profiles = entries.map(([name, settings]) => `<${name}>${settings}</${name}>`)
  const accounts = entries.map(
    ([name]) => `<${name}>
      <password>${PASSWORD}</password><networks><ip>127.0.0.1</ip></networks>
      <profile>${name}</profile><quota>default</quota>${name === 'puller' ? grants() : ''}
    </${name}>`,
  )
  return `<clickhouse>
    <profiles><default/>${profiles.join('')}</profiles>
    <quotas><default/></quotas>
    <users>
      <default>
        <password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
      </default>
      ${accounts.join('')}
    </users>
  </clickhouse>`
}
