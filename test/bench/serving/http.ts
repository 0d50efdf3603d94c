/** The service under load beside a bare Express server: cached replies, 304s, and snapshots that change meanwhile. */
import { randomUUID } from 'node:crypto'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { DuckDBInstance } from '@duckdb/node-api'
import { hashKey, makeKey } from '../../../api/accounts/credentials.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { addDays, asOfFromId, snapshotId } from '../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { currentSnapshot, pointAt } from '../../../pipeline/snapshot/list.ts'
import { timeValue } from '../../../pipeline/duckdb/sql-values.ts'
import { until } from '../../support/api.ts'
import { measureInTurns, type Measured } from '../measure.ts'
import { REQUESTS_PER_KEY, loadWithWrk } from '../wrk.ts'
import type { BareTask } from './bare.ts'
import { LAST_DAY } from './data.ts'
import { startPrintingPort, stop, type RunningService } from '../servers.ts'

/** Size of the load. */
export interface LoadSizes {
  readonly runs: number
  readonly connections: number
  /** Seconds of one measurement. */
  readonly seconds: number
  /** Number of snapshots that become current, one per second. */
  readonly swaps: number
}

const BARE = new URL('bare.ts', import.meta.url)
const PATH = '/api/v1/datasets/app-rankings'
const SECOND_MS = 1000

/** Enough for 60,000 requests a second, with a warming up that takes half as long as the measuring. */
const KEYS_PER_SECOND = 3600

const ADD_ACCOUNT = 'INSERT INTO accounts (id, name, created_at) VALUES ($1, $2, $3)'
const ADD_KEY = `
  INSERT INTO api_keys (id, account_id, kind, key_hash, key_end, created_at) VALUES ($1, $2, $3, $4, $5, $6)`

/** Adds keys to the store, each with its own account: the limit of a key is 30 requests per minute. */
export async function makeKeys(dataDir: string, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, () => makeKey('inference'))
  const now = new Date()
  const store = await openStore({ DATA_DIR: dataDir }, now)
  await store.transaction(async (queries) => {
    for (const key of keys) {
      const account = randomUUID()
      await queries.query(ADD_ACCOUNT, [account, account, now.toISOString()])
      const values = [randomUUID(), account, 'inference', hashKey(key), key.slice(-4), now.toISOString()]
      await queries.query(ADD_KEY, values)
    }
  })
  await store.close()
  return keys
}

/** A file with as many new keys as a load of these seconds can use up. */
async function keysFile(dataDir: string, seconds: number): Promise<string> {
  const file = join(dataDir, 'keys.json')
  writeFileSync(file, (await makeKeys(dataDir, Math.ceil(seconds * KEYS_PER_SECOND))).join('\n'))
  return file
}

async function startBare(task: BareTask) {
  const { child, port } = await startPrintingPort(BARE, JSON.stringify(task))
  return {
    url: `http://127.0.0.1:${port}${task.path}`,
    [Symbol.asyncDispose]: () => stop(child),
  }
}

/** Requests different uncached windows from the service, one after the other. */
export async function queryWindows(
  { origin }: RunningService,
  { dataDir, count }: { readonly dataDir: string; readonly count: number },
): Promise<void> {
  const keys = await makeKeys(dataDir, Math.ceil(count / REQUESTS_PER_KEY))
  for (let index = 0; index < count; index += 1) {
    const key = keys[Math.floor(index / REQUESTS_PER_KEY)]
    const sort = SORTS[index % SORTS.length]
    const address = `${origin}${PATH}?sort=${sort}&start_date=${addDays(LAST_DAY, -index - 1)}&end_date=${addDays(LAST_DAY, -index % 7)}`
    const reply = await fetch(address, { headers: { authorization: `Bearer ${key}` } })
    if (reply.status !== 200)
      throw new Error(`${address} was answered ${reply.status}: ${await reply.text()}`)
    await reply.arrayBuffer()
  }
}

/** The cached targets. */
export const READY = [
  { name: 'b: cached reply', path: PATH, mode: 'identity' },
  { name: 'b: cached reply, gzip', path: PATH, mode: 'gzip' },
  { name: 'b: cached view', path: '/', mode: 'identity' },
  { name: 'b: cached view, gzip', path: '/', mode: 'gzip' },
  { name: 'c: 304', path: PATH, mode: '304' },
] as const
type Ready = (typeof READY)[number]

/** A server and its speed. */
export interface Answered {
  readonly name: string
  readonly measured: Measured
}

/**
 * A bare server with the same bytes, one that also sets all headers of the service, and the service, in
 * turns.
 */
export async function measureReady(
  { path, mode }: Ready,
  service: RunningService,
  { dataDir, sizes }: { readonly dataDir: string; readonly sizes: LoadSizes },
): Promise<readonly Answered[]> {
  const [key = ''] = await makeKeys(dataDir, 1)
  const accept: Record<string, string> = mode === 'gzip' ? { 'accept-encoding': 'gzip' } : {}
  const reply = await request(`${service.origin}${path}`, {
    headers: { ...accept, authorization: `Bearer ${key}` },
  })
  const bodyFile = join(dataDir, 'body')
  writeFileSync(bodyFile, Buffer.from(await reply.body.arrayBuffer()))
  const headers = fixedHeaders(reply.headers)
  const few = Object.fromEntries(Object.entries(headers).filter(([name]) => OF_THE_BODY.has(name)))
  await using bare = await startBare({ path, bodyFile, headers: few })
  await using dressed = await startBare({ path, bodyFile, headers })
  const { connections, seconds, runs } = sizes
  const asked = mode === '304' ? { 'if-none-match': headers['etag'] ?? '' } : accept
  const contenders = [
    { name: 'bare Express', url: bare.url },
    { name: 'bare Express, all headers', url: dressed.url },
    { name: 'service', url: `${service.origin}${path}` },
  ]
  const mediansOf = await measureInTurns(runs, contenders, async ({ url }) =>
    loadWithWrk({
      url,
      connections,
      seconds,
      headers: asked,
      keysFile: await keysFile(dataDir, seconds),
      status: mode === '304' ? 304 : 200,
    }),
  )
  return contenders.map((contender) => ({ name: contender.name, measured: mediansOf(contender) }))
}

const OF_THE_BODY = new Set(['content-type', 'content-encoding', 'etag'])
const OF_THE_CONNECTION = new Set(['connection', 'keep-alive', 'date', 'content-length'])

/** The headers that a server sets by itself, with one value each. */
function fixedHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && !OF_THE_CONNECTION.has(name) ? [[name, value]] : [],
    ),
  )
}

/** Copies the current snapshot with times a second apart; returns the identifiers. */
export async function copySnapshots(dataDir: string, count: number): Promise<string[]> {
  const original = currentSnapshot(dataDir)
  const asOf = original === undefined ? undefined : asOfFromId(original)
  if (original === undefined || asOf === undefined) throw new Error(`There is no snapshot in ${dataDir}`)
  const ids: string[] = []
  for (let number = 1; number <= count; number += 1) {
    const time = new Date(asOf.getTime() + number * SECOND_MS)
    const id = snapshotId(time)
    const folder = join(dataDir, 'snapshots', id)
    mkdirSync(folder)
    copyFileSync(join(dataDir, 'snapshots', original, SNAPSHOT_FILE), join(folder, SNAPSHOT_FILE))
    const instance = await DuckDBInstance.create(join(folder, SNAPSHOT_FILE))
    const connection = await instance.connect()
    await connection.run('UPDATE meta SET as_of = $1', [timeValue(time)])
    connection.closeSync()
    instance.closeSync()
    ids.push(id)
  }
  return ids
}

function isOpened(service: RunningService, snapshot: string): boolean {
  return service.log().includes(`"snapshot":"${snapshot}"`)
}

/** Makes each of the snapshots current, one per second, under load; also counts how many the service opened. */
export async function measureSwaps(
  service: RunningService,
  {
    dataDir,
    ids,
    sizes: { connections },
  }: { readonly dataDir: string; readonly ids: readonly string[]; readonly sizes: LoadSizes },
): Promise<Measured> {
  const seconds = ids.length + 1
  const loading = loadWithWrk({
    url: `${service.origin}${PATH}`,
    connections,
    seconds,
    headers: {},
    keysFile: await keysFile(dataDir, seconds),
    status: 200,
  })
  for (const id of ids) {
    await sleep(SECOND_MS)
    pointAt(dataDir, id)
  }
  const measured = await loading
  // The newest is opened eventually; earlier ones may be skipped.
  const newest = ids.at(-1)
  if (newest !== undefined) await until(() => isOpened(service, newest))
  const opened = ids.filter((id) => isOpened(service, id)).length
  return { ...measured, figures: { ...measured.figures, opened } }
}
