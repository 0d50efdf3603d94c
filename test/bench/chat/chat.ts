/**
 * The chat part of the bench: requests to a provider that answers at once, straight, through this service and
 * through another open gateway in the same language, in turns.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../support/ports.ts'
import { makeKey } from '../../support/api.ts'
import {
  figure,
  inTemporaryFolder,
  measureInChild,
  measureInTurns,
  printTable,
  ratio,
  residentMegabytes,
  type Measured,
  type Print,
} from '../measure.ts'
import { startPrintingPort, startService, stop, untilAnswering } from '../servers.ts'

/** Sizes of the cases. */
export interface ChatSizes {
  readonly runs: number
  readonly concurrencies: readonly number[]
  /** Warm-up in milliseconds per target, whole and streaming. */
  readonly warmMs: number
  /** Duration of a measurement in milliseconds. */
  readonly ms: number
}

const SIZES: ChatSizes = { runs: 5, concurrencies: [1, 10, 100], warmMs: 6000, ms: 2000 }

const WARM_CONCURRENCY = 10

/** A target of chat requests. */
interface Target {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly process: ChildProcess
}

const UPSTREAM = new URL('upstream.ts', import.meta.url)
const LOAD = new URL('load.ts', import.meta.url)
const GATEWAY = new URL('../../../node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url)

/** Runs every case and prints a table. */
export async function benchChat(print: Print, sizes: ChatSizes = SIZES): Promise<void> {
  await inTemporaryFolder(async (folder) => {
    const started = await startTargets(folder)
    try {
      const rows = await measureAll(started, sizes)
      print(
        `\nchat: medians of ${sizes.runs} runs that take turns; milliseconds, added ones beside the direct way`,
      )
      const header = [
        'case',
        'through',
        'requests/s',
        'p50',
        'p99',
        'added p50',
        'added p99',
        'added to first token',
      ]
      printTable(print, header, rows)
      const memory = started
        .slice(1)
        .map((target) => `${target.name} ${residentMegabytes(target.process.pid)} MB`)
      print(`memory at the end: ${memory.join(', ')}`)
    } finally {
      for (const { process: child } of started) await stop(child)
    }
  })
}

async function startTargets(folder: string): Promise<readonly [Target, Target, Target]> {
  const { child, port } = await startPrintingPort(UPSTREAM)
  const host = `http://127.0.0.1:${port}/v1`
  const direct = { name: 'direct', url: `${host}/chat/completions`, headers: {}, process: child }
  return [direct, await startTarget(folder, host), await startGateway(host)]
}

async function startTarget(folder: string, host: string): Promise<Target> {
  const MODELS_FILE = join(folder, 'models.json')
  const provider = { name: 'instant', base_url: host, model: 'bench' }
  writeFileSync(MODELS_FILE, JSON.stringify({ models: { 'bench/model': { providers: [provider] } } }))
  const { child, origin } = await startService(folder, { MODELS_FILE })
  const headers = {
    authorization: `Bearer ${await makeKey({ DATA_DIR: folder })}`,
    'http-referer': 'https://bench.example',
  }
  return { name: 'this service', url: `${origin}/api/v1/chat/completions`, headers, process: child }
}

async function startGateway(host: string): Promise<Target> {
  const port = await freePort()
  const child = spawn(process.execPath, [fileURLToPath(GATEWAY), `--port=${port}`, '--headless'], {
    stdio: 'ignore',
    env: { ...process.env, NODE_ENV: 'production' },
  })
  await untilAnswering(`http://127.0.0.1:${port}/`, child)
  const headers = {
    authorization: 'Bearer key',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': host,
  }
  return {
    name: 'Portkey gateway',
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    headers,
    process: child,
  }
}

/** Gateways run for weeks; the engine has compiled the hot code after some ten thousand requests. */
async function warm(targets: readonly Target[], ms: number): Promise<void> {
  for (const { url, headers } of targets) {
    for (const stream of [false, true]) {
      await measureInChild(LOAD, { url, headers, stream, concurrency: WARM_CONCURRENCY, ms })
    }
  }
}

async function measureAll(targets: readonly [Target, Target, Target], sizes: ChatSizes): Promise<string[][]> {
  await warm(targets, sizes.warmMs)
  const rows: string[][] = []
  for (const stream of [false, true]) {
    for (const concurrency of sizes.concurrencies) {
      const mediansOf = await measureInTurns(sizes.runs, targets, ({ url, headers }) =>
        measureInChild(LOAD, { url, headers, stream, concurrency, ms: sizes.ms }),
      )
      const name = `${stream ? 'stream' : 'whole'}, ${concurrency} at a time`
      rows.push(...rowsOf(name, targets, targets.map(mediansOf)))
    }
  }
  return rows
}

function rowsOf(name: string, targets: readonly Target[], measured: readonly Measured[]): string[][] {
  const [direct] = measured
  if (direct === undefined) return []
  return measured.map((one, index) => {
    const of = (key: string) => figure(one, key)
    const added = (key: string) => (index === 0 ? '' : (of(key) - figure(direct, key)).toFixed(2))
    const share = index === 0 ? '' : ` (${ratio(of('perSecond'), figure(direct, 'perSecond'))})`
    return [
      index === 0 ? name : '',
      targets[index]?.name ?? '',
      `${Math.round(of('perSecond'))}${share}`,
      of('p50').toFixed(2),
      of('p99').toFixed(2),
      added('p50'),
      added('p99'),
      added('first'),
    ]
  })
}
