/**
 * The chat part of the bench: requests to a provider that answers at once: direct, through this service and through
 * LiteLLM's proxy, in turns.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeKey } from '../../support/api.ts'
import { writeModels } from '../../support/chat/chat.ts'
import { freePort } from '../../support/ports.ts'
import { startProcess } from '../../support/processes.ts'
import {
  figure,
  inTemporaryFolder,
  measureInTurns,
  printTable,
  ratio,
  residentMegabytes,
} from '../measure.ts'
import type { Measured, Options, Print } from '../measure.ts'
import { startFile, startService, untilAnswering, type Server } from '../servers.ts'
import { hasWrk, loadWithWrk } from '../wrk.ts'

/** Sizes of the cases. */
type Sizes = {
  readonly runs: number
  readonly concurrencies: readonly number[]
  /** Warm-up in seconds per target, whole and streaming: gateways run for weeks, with all hot code compiled. */
  readonly warmSeconds: number
  /** Duration of a measurement in seconds. */
  readonly seconds: number
}

const SIZES: Sizes = { runs: 5, concurrencies: [1, 10, 100], warmSeconds: 6, seconds: 2 }
const WARM_CONCURRENCY = 10
/** LiteLLM checks this key in memory; the service looks its own key up in its store. */
const LITELLM_KEY = 'sk-bench'

/** A target of chat requests. */
type Target = {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** A file with the key. */
  readonly keysFile: string
}

type Load = { readonly stream: boolean; readonly connections: number; readonly seconds: number }

/** Runs every case and prints a table. */
export async function benchChat(print: Print, { sizes = SIZES }: Options<Sizes>): Promise<void> {
  if (!hasWrk()) return print('\nchat: left out, since wrk is not installed')
  await inTemporaryFolder(async (folder) => {
    await using provider = await startFile(new URL('upstream.ts', import.meta.url))
    const host = `${provider.origin}/v1`
    const MODELS_FILE = writeModels(folder, { 'bench/model': [{ base_url: host, model: 'bench' }] })
    await using service = await startService(folder, { MODELS_FILE })
    const [noKey, keysFile] = [join(folder, 'no-key'), join(folder, 'key')]
    writeFileSync(noKey, LITELLM_KEY)
    writeFileSync(keysFile, await makeKey({ DATA_DIR: folder }))
    await using litellm = await startLitellm(print, folder, host)
    const targets: Target[] = [
      { name: 'direct', url: `${host}/chat/completions`, headers: {}, keysFile: noKey },
      {
        name: 'this service',
        url: `${service.origin}/api/v1/chat/completions`,
        headers: { 'http-referer': 'https://bench.example' },
        keysFile,
      },
    ]
    if (litellm !== undefined) {
      const url = `${litellm.origin}/chat/completions`
      targets.push({ name: 'LiteLLM', url, headers: {}, keysFile: noKey })
    }
    for (const target of targets) {
      for (const stream of [false, true])
        await load(target, { stream, connections: WARM_CONCURRENCY, seconds: sizes.warmSeconds })
    }
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
    print(
      `\nchat: medians of ${sizes.runs} runs that take turns; milliseconds, added ones beside the direct way`,
    )
    const header = ['case', 'through', 'requests/s', 'p50', 'p99', 'added p50', 'added p99']
    printTable(print, header, rows)
    for (const [name, server] of Object.entries({ 'this service': service, LiteLLM: litellm }))
      if (server !== undefined)
        print(`memory of ${name} at the end: ${residentMegabytes(server.child.pid)} MB`)
  })
}

/** LiteLLM's proxy before the same provider; undefined, with a line that says so, if it is not installed. */
async function startLitellm(print: Print, folder: string, host: string): Promise<Server | undefined> {
  const program = join(process.env['LITELLM_PEER'] ?? '', 'bin', 'litellm')
  if (!existsSync(program)) {
    print(
      '\nLiteLLM: left out, since LITELLM_PEER names no virtual environment with litellm[proxy] (pip install)',
    )
    return undefined
  }
  const params = { model: 'openai/bench', api_base: host, api_key: 'none' }
  const config = join(folder, 'litellm.yaml')
  // YAML includes JSON.
  const models = [{ model_name: 'bench/model', litellm_params: params }]
  const settings = { model_list: models, general_settings: { master_key: LITELLM_KEY } }
  writeFileSync(config, JSON.stringify(settings))
  const port = await freePort()
  const args = ['--config', config, '--host', '127.0.0.1', '--port', String(port), '--telemetry', 'False']
  // Without a database it keeps nothing, and asks nobody for prices.
  const withoutDatabase = ['-u', 'DATABASE_URL', program, ...args]
  const environment = { LITELLM_LOG: 'ERROR', LITELLM_LOCAL_MODEL_COST_MAP: 'True' }
  return await untilAnswering(startProcess('env', withoutDatabase, { environment }), port)
}

function load({ url, headers, keysFile }: Target, given: Load): Promise<Measured> {
  const content = 'Say a few words about nothing in particular.'
  const messages = [{ role: 'user', content }]
  const body = JSON.stringify({ model: 'bench/model', messages, stream: given.stream })
  return loadWithWrk({ url, headers, keysFile, status: 200, ...given, body })
}

function rowsOf(name: string, targets: readonly Target[], measured: readonly Measured[]): string[][] {
  const [direct] = measured
  if (direct === undefined) return []
  return measured.map((one, index) => {
    const of = (key: string) => figure(one, key)
    const added = (key: string) => (index === 0 ? '' : (of(key) - figure(direct, key)).toFixed(2))
    const share = index === 0 ? '' : ` (${ratio(of('perSecond'), figure(direct, 'perSecond'))})`
    const perSecond = `${Math.round(of('perSecond'))}${share}`
    const times = [of('p50').toFixed(2), of('p99').toFixed(2), added('p50'), added('p99')]
    return [index === 0 ? name : '', targets[index]?.name ?? '', perSecond, ...times]
  })
}
