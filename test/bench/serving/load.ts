/** The service under load beside a bare Express server: cached replies and 304s, with keys enough for their limits. */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { addKey } from '../../../api/accounts/keys.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { takeTurns, type Measured } from '../measure.ts'
import { startFile, type Server } from '../servers.ts'
import { REQUESTS_PER_KEY, loadWithWrk } from '../wrk.ts'

/** Size of the load. */
export type LoadSizes = {
  readonly runs: number
  readonly connections: number
  /** Seconds of one measurement. */
  readonly seconds: number
}

export const RANKINGS = '/api/v1/datasets/app-rankings'

/** Enough for 60,000 requests a second, with a warming up that takes half as long as the measuring. */
const KEYS_PER_SECOND = 3600

/** Adds keys to the store, each with its own account: the limit of a key is 30 requests per minute. */
async function makeKeys(dataDir: string, count: number): Promise<string[]> {
  const now = new Date()
  const store = await openStore({ DATA_DIR: dataDir })
  const keys = await store.transaction(async (queries) => {
    const made: string[] = []
    while (made.length < count)
      made.push(await addKey(queries, { account: randomUUID(), kind: 'inference', now }))
    return made
  })
  await store.close()
  return keys
}

/** A function that requests an address of JSON, with keys for so many requests. */
export async function makeClient(dataDir: string, count: number): Promise<(url: string) => Promise<unknown>> {
  const keys = await makeKeys(dataDir, Math.ceil(count / REQUESTS_PER_KEY))
  let sent = 0
  return async (url) => {
    const key = keys[Math.floor(sent / REQUESTS_PER_KEY)]
    sent += 1
    const reply = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
    if (reply.status !== 200) throw new Error(`${url} was answered ${reply.status}: ${await reply.text()}`)
    return await reply.json()
  }
}

/** The cached targets. */
export const READY = [
  { name: 'b: cached reply', path: RANKINGS, mode: 'identity' },
  { name: 'b: cached reply, gzip', path: RANKINGS, mode: 'gzip' },
  { name: 'b: cached view', path: '/', mode: 'identity' },
  { name: 'b: cached view, gzip', path: '/', mode: 'gzip' },
  { name: 'c: 304', path: RANKINGS, mode: '304' },
] as const

/** A bare server with the same bytes, and the service, in turns. */
export async function measureReady(
  { path, mode }: (typeof READY)[number],
  service: Server,
  { dataDir, sizes }: { readonly dataDir: string; readonly sizes: LoadSizes },
): Promise<readonly [bare: Measured, service: Measured]> {
  const [key = ''] = await makeKeys(dataDir, 1)
  const accept: Record<string, string> = mode === 'gzip' ? { 'accept-encoding': 'gzip' } : {}
  const url = `${service.origin}${path}`
  const reply = await request(url, { headers: { ...accept, authorization: `Bearer ${key}` } })
  const [bodyFile, keysFile] = [join(dataDir, 'body'), join(dataDir, 'keys')]
  writeFileSync(bodyFile, Buffer.from(await reply.body.arrayBuffer()))
  const headers: Record<string, string> = {}
  for (const name of ['content-type', 'content-encoding', 'etag']) {
    const value = reply.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  await using bare = await startFile(new URL('bare.ts', import.meta.url), { path, bodyFile, headers })
  const { connections, seconds, runs } = sizes
  const load = async (target: string) => {
    writeFileSync(keysFile, (await makeKeys(dataDir, Math.ceil(seconds * KEYS_PER_SECOND))).join('\n'))
    return loadWithWrk({
      url: target,
      connections,
      seconds,
      headers: mode === '304' ? { 'if-none-match': headers['etag'] ?? '' } : accept,
      keysFile,
      status: mode === '304' ? 304 : 200,
    })
  }
  return await takeTurns(
    runs,
    () => load(`${bare.origin}${path}`),
    () => load(url),
  )
}
