/** A PostgreSQL server for one test file: a temporary cluster on a free port, without fsync. */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { chownSync, globSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { atEnd } from './folders.ts'
import { freePort } from './ports.ts'
import { findProgram } from './programs.ts'

// Debian installs each version in its own folder, off the PATH.
const DEBIAN_FOLDERS = globSync('/usr/lib/postgresql/*/bin').toSorted().toReversed()

/** The password of the test servers' only user. */
export const PASSWORD = 'p4ssword-of-the-test'

export type Postgres = Awaited<ReturnType<typeof startPostgres>>

/** The folder of the server's programs; undefined, with a line on stderr, if they are not installed. */
export function findPostgres(): string | undefined {
  const initdb = findProgram('initdb', DEBIAN_FOLDERS)
  return initdb === undefined ? undefined : dirname(initdb)
}

/** Makes a cluster with the programs in `bin` and starts it; it ends with the test file. */
export async function startPostgres(bin: string) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'postgres-test-')))
  const owner = serverUser()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const [data, passwordFile] = [join(folder, 'cluster'), join(folder, 'password')]
  const run = (program: string, ...args: readonly string[]) =>
    promisify(execFile)(join(bin, program), ['-D', data, ...args], { ...owner, cwd: folder })

  writeFileSync(passwordFile, PASSWORD)
  // Texts sort as in a dictionary, as on most servers and unlike SQLite.
  const locale = ['--encoding=UTF8', '--locale-provider=icu', '--icu-locale=en-US']
  const access = ['--username=test', '--auth=scram-sha-256', `--pwfile=${passwordFile}`]
  await run('initdb', ...locale, ...access, '--no-sync')
  const port = await freePort()
  const address = (database: string) => `postgres://test:${PASSWORD}@127.0.0.1:${port}/${database}`
  let databases = 0

  /** Starts it again on the same port, with its data; it answers once this resolves. */
  async function start(): Promise<void> {
    const options = `-c fsync=off -c listen_addresses=127.0.0.1 -c unix_socket_directories=${folder} -c port=${port}`
    await run('pg_ctl', 'start', '--wait', '--log', join(folder, 'log'), '--options', options)
  }

  /** Stops the server at once, without waiting for clients. */
  async function stop(): Promise<void> {
    await run('pg_ctl', 'stop', '--mode', 'immediate')
  }

  /** Signals the server and the processes of its connections, of which one may end meanwhile. */
  function signal(name: 'STOP' | 'CONT'): void {
    const kill = (ids: string) => spawnSync('sh', ['-c', `kill -s ${name} ${ids}`])
    const [id = ''] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
    kill(id)
    kill(readFileSync(`/proc/${id}/task/${id}/children`, 'utf8').trim())
  }

  /** Does `work` between the two. */
  const between = (begin: () => unknown, end: () => unknown) => async (work: () => Promise<unknown>) => {
    await begin()
    try {
      await work()
    } finally {
      await end()
    }
  }

  await start()
  atEnd(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    /** Ends the server during `work`: connections break, and new ones are refused. */
    whileAway: between(stop, start),
    /** Stops every process of the server during `work`, as a frozen machine does: nothing answers, or closes. */
    whileSuspended: between(
      () => signal('STOP'),
      () => signal('CONT'),
    ),
    /** Makes an empty database and resolves to its address. */
    createDatabase: async () => {
      databases += 1
      await ask(address('postgres'), `CREATE DATABASE test_${databases}`)
      return address(`test_${databases}`)
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
