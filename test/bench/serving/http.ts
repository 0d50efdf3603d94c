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
import { startFile, type RunningService } from '../servers.ts'
import { REQUESTS_PER_KEY, loadWithWrk } from '../wrk.ts'
import { LAST_DAY } from './data.ts'

/** Size of the load. */
export interface LoadSizes {
  readonly runs: number
  readonly connections: number
  /** Seconds of one measurement. */
  readonly seconds: number
  /** Number of snapshots that become current, one per second. */
  readonly swaps: number
}

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

/** Requests different uncached windows from the service, one after the other. */
export async function queryWindows(
  { origin }: RunningService,
  { dataDir, count }: { readonly dataDir: string; readonly count: number },
): Promise<void> {
  const keys = await makeKeys(dataDir, Math.ceil(count / REQUESTS_PER_KEY))
  for (let index = 0; index < count; index += 1) {
    const sort = SORTS[index % SORTS.length]
    const window = `start_date=${addDays(LAST_DAY, -index - 1)}&end_date=${addDays(LAST_DAY, -index % 7)}`
    const key = keys[Math.floor(index / REQUESTS_PER_KEY)]
    const headers = { authorization: `Bearer ${key}` }
    const reply = await fetch(`${origin}${PATH}?sort=${sort}&${window}`, { headers })
    const text = await reply.text()
    if (reply.status !== 200) throw new Error(`${window} was answered ${reply.status}: ${text}`)
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

/** A bare server with the same bytes, and the service, in turns. */
export async function measureReady(
  { path, mode }: (typeof READY)[number],
  service: RunningService,
  { dataDir, sizes }: { readonly dataDir: string; readonly sizes: LoadSizes },
): Promise<readonly [bare: Measured, service: Measured]> {
  const [key = ''] = await makeKeys(dataDir, 1)
  const accept: Record<string, string> = mode === 'gzip' ? { 'accept-encoding': 'gzip' } : {}
  const url = `${service.origin}${path}`
  const reply = await request(url, { headers: { ...accept, authorization: `Bearer ${key}` } })
  const bodyFile = join(dataDir, 'body')
  writeFileSync(bodyFile, Buffer.from(await reply.body.arrayBuffer()))
  const headers: Record<string, string> = {}
  for (const name of ['content-type', 'content-encoding', 'etag']) {
    const value = reply.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  await using bare = await startFile(new URL('bare.ts', import.meta.url), { path, bodyFile, headers })
  const { connections, seconds, runs } = sizes
  const urls = [`${bare.origin}${path}`, url] as const
  const mediansOf = await measureInTurns(runs, urls, async (each) =>
    loadWithWrk({
      url: each,
      connections,
      seconds,
      headers: mode === '304' ? { 'if-none-match': headers['etag'] ?? '' } : accept,
      keysFile: await keysFile(dataDir, seconds),
      status: mode === '304' ? 304 : 200,
    }),
  )
  return [mediansOf(urls[0]), mediansOf(urls[1])]
}

/** Copies the current snapshot with times a second apart; returns the identifiers. */
export async function copySnapshots(dataDir: string, count: number): Promise<string[]> {
  const original = currentSnapshot(dataDir)
  const asOf = original === undefined ? undefined : asOfFromId(original)
  if (original === undefined || asOf === undefined) throw new Error(`There is no snapshot in ${dataDir}`)
  const ids: string[] = []
  for (let number = 1; number <= count; number += 1) {
    const time = new Date(asOf.getTime() + number * SECOND_MS)
    const folder = join(dataDir, 'snapshots', snapshotId(time))
    mkdirSync(folder)
    copyFileSync(join(dataDir, 'snapshots', original, SNAPSHOT_FILE), join(folder, SNAPSHOT_FILE))
    const instance = await DuckDBInstance.create(join(folder, SNAPSHOT_FILE))
    const connection = await instance.connect()
    await connection.run('UPDATE meta SET as_of = $1', [timeValue(time)])
    connection.closeSync()
    instance.closeSync()
    ids.push(snapshotId(time))
  }
  return ids
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
  const isOpened = (id: string) => service.log().includes(`"snapshot":"${id}"`)
  const url = `${service.origin}${PATH}`
  const keys = await keysFile(dataDir, seconds)
  const loading = loadWithWrk({ url, connections, seconds, headers: {}, keysFile: keys, status: 200 })
  for (const id of ids) {
    await sleep(SECOND_MS)
    pointAt(dataDir, id)
  }
  const measured = await loading
  // The newest is opened eventually; earlier ones may be skipped.
  await until(() => ids.slice(-1).every(isOpened))
  return { ...measured, figures: { ...measured.figures, opened: ids.filter(isOpened).length } }
}
