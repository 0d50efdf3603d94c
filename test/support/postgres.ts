/** A PostgreSQL server for one test file: a temporary cluster on a free port, without fsync. */
import { execFile, execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chownSync, globSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { until } from './api.ts'
import { freePort } from './ports.ts'
import { findProgram } from './programs.ts'

// Debian installs each version in its own folder, off the PATH.
const DEBIAN_FOLDERS = globSync('/usr/lib/postgresql/*/bin').toSorted().toReversed()

/** The password of the test servers' only user. */
export const PASSWORD = 'p4ssword-of-the-test'

export type Postgres = Awaited<ReturnType<typeof startPostgres>>

/**
 * The folder of the server's programs, `.` if they are on the PATH; undefined, with a line on stderr, if they are not
 * installed.
 */
export function findPostgres(): string | undefined {
  const initdb = findProgram('initdb', DEBIAN_FOLDERS)
  return initdb === undefined ? undefined : dirname(initdb)
}

/** Makes a cluster with the programs in `bin` and starts it. */
export async function startPostgres(bin: string) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'postgres-test-')))
  const owner = serverUser()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, PASSWORD)
  const data = join(folder, 'cluster')
  const initialise = [
    '--username=test',
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    // Texts sort as in a dictionary, as on most servers and unlike SQLite.
    '--encoding=UTF8',
    '--locale-provider=icu',
    '--icu-locale=en-US',
    '--no-sync',
    data,
  ]
  await promisify(execFile)(join(bin, 'initdb'), initialise, { ...owner, cwd: folder })
  const port = await freePort()
  const address = (database: string) => `postgres://test:${PASSWORD}@127.0.0.1:${port}/${database}`
  let server: ChildProcess | undefined
  let databases = 0

  async function start(): Promise<void> {
    const options = { fsync: 'off', listen_addresses: '127.0.0.1', unix_socket_directories: folder, port }
    const args = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    server = spawn(join(bin, 'postgres'), ['-D', data, ...args], { ...owner, cwd: folder, stdio: 'ignore' })
    await until(() => {
      if (server?.exitCode !== null) throw new Error('The PostgreSQL server ended at its start')
      return ask(address('postgres'), 'SELECT 1').catch(() => undefined)
    })
  }

  /** Stops the server at once, without waiting for clients. */
  async function stop(): Promise<void> {
    if (server === undefined) return
    // SIGQUIT is the immediate shutdown.
    server.kill('SIGQUIT')
    await once(server, 'exit')
    server = undefined
  }

  /** Signals the server and the processes of its connections, of which one may end meanwhile. */
  function signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    const pid = server?.pid ?? 0
    process.kill(pid, name)
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    spawnSync('sh', ['-c', `kill -s ${name.slice('SIG'.length)} ${children}`])
  }

  await start()
  return {
    /** Starts it again on the same port, with its data. */
    start,
    stop,
    /** Stops every process of the server during `work`, as a frozen machine does: nothing answers, or closes. */
    async whileSuspended(work: () => Promise<unknown>): Promise<void> {
      signal('SIGSTOP')
      try {
        await work()
      } finally {
        signal('SIGCONT')
      }
    },
    /** Makes an empty database and resolves to its address. */
    createDatabase: async () => {
      databases += 1
      await ask(address('postgres'), `CREATE DATABASE test_${databases}`)
      return address(`test_${databases}`)
    },
    async remove() {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Runs one statement on a new connection. */
export async function ask(address: string, sql: string): Promise<readonly unknown[]> {
  const client = new Client(address)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

// The server refuses to run as root.
function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (option: string) => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}
