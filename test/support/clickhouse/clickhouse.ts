/** A ClickHouse cluster for one test file: two servers on loopback, a shard each, and a table over both. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { REPOSITORY } from '../processes.ts'
import { freePort } from '../ports.ts'
import { setTimeout as sleep } from 'node:timers/promises'

const USER = 'pipeline'
export const PASSWORD = 's3cret-of-the-test'

export interface ClickHouseCluster {
  /** Host and port of the first server's HTTP interface. */
  readonly host: string
  /** The value of USAGE_SOURCE, including the password. */
  readonly address: string
  /** Runs a statement on the first server, or on both. */
  run(sql: string): Promise<string>
  runOnShards(sql: string): Promise<void>
  /** Ends the second shard as a power cut would. */
  killSecondShard(): Promise<void>
  remove(): Promise<void>
}

interface Server {
  readonly http: number
  readonly tcp: number
  readonly folder: string
}

/** Starts both servers and creates the tables of data/clickhouse.sql on them. */
export async function startCluster(program: string): Promise<ClickHouseCluster> {
  const outer = realpathSync(mkdtempSync(join(tmpdir(), 'clickhouse-test-')))
  const servers = await Promise.all(
    ['a', 'b'].map(async (name) => ({
      http: await freePort(),
      tcp: await freePort(),
      folder: join(outer, name),
    })),
  )
  const processes = servers.map((server) => startServer(program, server, servers))
  const ask = async (port: number, sql: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/?user=${USER}&password=${PASSWORD}`, {
      method: 'POST',
      body: sql,
    })
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    return text
  }
  const [first, second] = servers
  if (first === undefined || second === undefined) throw new Error('There are two servers')
  for (const [index, { http }] of servers.entries()) await untilReady(ask, http, processes[index])

  const runOnShards = async (sql: string) => {
    for (const { http } of servers) await ask(http, sql)
  }
  for (const statement of tableStatements()) await runOnShards(statement)
  return {
    host: `127.0.0.1:${first.http}`,
    address: `clickhouse://${USER}:${PASSWORD}@127.0.0.1:${first.http}/default?table=usage`,
    run: (sql) => ask(first.http, sql),
    runOnShards,
    killSecondShard: () => kill(processes[1]),
    async remove() {
      await Promise.all(processes.map(kill))
      rmSync(outer, { recursive: true, force: true })
    },
  }
}

/** The statements of data/clickhouse.sql, unchanged. */
function tableStatements(): string[] {
  const text = readFileSync(join(REPOSITORY, 'data', 'clickhouse.sql'), 'utf8').replaceAll(/^--.*$/gm, '')
  return text.split(';').filter((statement) => statement.trim() !== '')
}

function startServer(program: string, server: Server, servers: readonly Server[]): ChildProcess {
  mkdirSync(join(server.folder, 'data'), { recursive: true })
  writeFileSync(join(server.folder, 'config.xml'), configuration(server, servers))
  writeFileSync(join(server.folder, 'users.xml'), users())
  return spawn(program, [`--config-file=${join(server.folder, 'config.xml')}`], {
    cwd: server.folder,
    stdio: 'ignore',
  })
}

function configuration({ http, tcp, folder }: Server, servers: readonly Server[]): string {
  const shards = servers.map(
    (server) =>
      `<shard><replica><host>127.0.0.1</host><port>${server.tcp}</port>` +
      `<user>${USER}</user><password>${PASSWORD}</password></replica></shard>`,
  )
  return `<yandex>
    <logger><level>none</level></logger>
    <listen_host>127.0.0.1</listen_host>
    <http_port>${http}</http_port>
    <tcp_port>${tcp}</tcp_port>
    <path>${folder}/data/</path>
    <tmp_path>${folder}/tmp/</tmp_path>
    <users_config>${folder}/users.xml</users_config>
    <default_profile>default</default_profile>
    <default_database>default</default_database>
    <mark_cache_size>67108864</mark_cache_size>
    <timezone>UTC</timezone>
    <remote_servers><production>${shards.join('')}</production></remote_servers>
  </yandex>`
}

function users(): string {
  return `<yandex>
    <profiles><default><insert_distributed_sync>1</insert_distributed_sync></default></profiles>
    <quotas><default/></quotas>
    <users><${USER}>
      <password>${PASSWORD}</password><networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile><quota>default</quota>
    </${USER}></users>
  </yandex>`
}

async function untilReady(
  ask: (port: number, sql: string) => Promise<string>,
  port: number,
  process: ChildProcess | undefined,
): Promise<void> {
  for (;;) {
    if (process?.exitCode !== null) throw new Error('The ClickHouse server ended at its start')
    try {
      await ask(port, 'SELECT 1')
      return
    } catch {
      await sleep(50)
    }
  }
}

async function kill(process: ChildProcess | undefined): Promise<void> {
  if (process === undefined || process.exitCode !== null || process.signalCode !== null) return
  process.kill('SIGKILL')
  await once(process, 'exit')
}
