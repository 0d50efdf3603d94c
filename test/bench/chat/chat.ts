/** The chat part of the bench: requests to a provider that answers at once, straight and through this service, in turns. */
import type { ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeKey } from '../../support/api.ts'
import {
  figure,
  inTemporaryFolder,
  measureInTurns,
  printTable,
  ratio,
  residentMegabytes,
} from '../measure.ts'
import type { Measured, Print } from '../measure.ts'
import { startPrintingPort, startService, stop } from '../servers.ts'
import { hasWrk, loadWithWrk } from '../wrk.ts'

/** Sizes of the cases. */
export interface ChatSizes {
  readonly runs: number
  readonly concurrencies: readonly number[]
  /** Warm-up in seconds per target, whole and streaming. */
  readonly warmSeconds: number
  /** Duration of a measurement in seconds. */
  readonly seconds: number
}

const SIZES: ChatSizes = { runs: 5, concurrencies: [1, 10, 100], warmSeconds: 6, seconds: 2 }

const WARM_CONCURRENCY = 10

/** A target of chat requests. */
interface Target {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** A file with the key. */
  readonly keysFile: string
  readonly process: ChildProcess
}

const UPSTREAM = new URL('upstream.ts', import.meta.url)

/** Runs every case and prints a table. */
export async function benchChat(print: Print, sizes: ChatSizes = SIZES): Promise<void> {
  if (!hasWrk()) return print('\nchat: left out, since wrk is not installed')
  await inTemporaryFolder(async (folder) => {
    const started = await startTargets(folder)
    try {
      const rows = await measureAll(started, sizes)
      print(
        `\nchat: medians of ${sizes.runs} runs that take turns; milliseconds, added ones beside the direct way`,
      )
      const header = ['case', 'through', 'requests/s', 'p50', 'p99', 'added p50', 'added p99']
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

async function startTargets(folder: string): Promise<readonly [Target, Target]> {
  const { child, port } = await startPrintingPort(UPSTREAM)
  const host = `http://127.0.0.1:${port}/v1`
  const keysFile = join(folder, 'no-key')
  writeFileSync(keysFile, 'none')
  const url = `${host}/chat/completions`
  return [{ name: 'direct', url, headers: {}, keysFile, process: child }, await startTarget(folder, host)]
}

async function startTarget(folder: string, host: string): Promise<Target> {
  const MODELS_FILE = join(folder, 'models.json')
  const provider = { name: 'instant', base_url: host, model: 'bench' }
  writeFileSync(MODELS_FILE, JSON.stringify({ models: { 'bench/model': { providers: [provider] } } }))
  const { child, origin } = await startService(folder, { MODELS_FILE })
  const keysFile = join(folder, 'key')
  writeFileSync(keysFile, await makeKey({ DATA_DIR: folder }))
  const headers = { 'http-referer': 'https://bench.example' }
  const url = `${origin}/api/v1/chat/completions`
  return { name: 'this service', url, headers, keysFile, process: child }
}

function bodyOf(stream: boolean): string {
  const content = 'Say a few words about nothing in particular.'
  return JSON.stringify({ model: 'bench/model', messages: [{ role: 'user', content }], stream })
}

function load(
  { url, headers, keysFile }: Target,
  given: { readonly stream: boolean; readonly connections: number; readonly seconds: number },
): Promise<Measured> {
  return loadWithWrk({ url, headers, keysFile, status: 200, ...given, body: bodyOf(given.stream) })
}

/** Gateways run for weeks; the engine has compiled the hot code after some ten thousand requests. */
async function warm(targets: readonly Target[], seconds: number): Promise<void> {
  for (const target of targets) {
    for (const stream of [false, true]) await load(target, { stream, connections: WARM_CONCURRENCY, seconds })
  }
}

async function measureAll(targets: readonly [Target, Target], sizes: ChatSizes): Promise<string[][]> {
  await warm(targets, sizes.warmSeconds)
  const rows: string[][] = []
  for (const stream of [false, true]) {
    for (const connections of sizes.concurrencies) {
      const mediansOf = await measureInTurns(sizes.runs, targets, (target) =>
        load(target, { stream, connections, seconds: sizes.seconds }),
      )
      const name = `${stream ? 'stream' : 'whole'}, ${connections} at a time`
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
    ]
  })
}
