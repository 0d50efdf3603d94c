/**
 * Entry point of `npm start`, the main job on a fresh machine (CONTRACT 9): one pipeline run, then the API with the
 * nightly schedule, and a first request to try.
 */
import '../pipeline/program/runtime.js'
import { execFile, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { settingsHelp } from '../pipeline/program/settings.ts'
import { print } from '../pipeline/program/terminal.ts'
import { createFirstKey } from './accounts/keys.ts'
import { SETTINGS } from './config.ts'
import { BASE_PATH } from './paths.ts'
import type { Log } from './process/log.ts'
import { runEntry } from './run-entry.ts'
import type { Service } from './serve.ts'

const RESTART_DELAY_MS = 5000
const FIRST_ACCOUNT = 'default'
const KEY_WAS_SHOWN =
  'the first one was shown when it was created; for another one: ' +
  `npm run -s keys -- create --account ${FIRST_ACCOUNT} --kind inference`

const USAGE = `npm start: one run of the pipeline, then the API with the nightly schedule beside it.

${settingsHelp(SETTINGS)}
The settings of the pipeline count too: npm run nightly -- --help`

await runEntry(USAGE, { check: pipelineFaults, before: runPipeline, after: welcomeAndSchedule })

/** The faults of the pipeline's settings, which the API does not know. */
async function pipelineFaults(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const program = programPath('setting-faults.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [program], { env: environment })
  return stdout.split('\n').filter((line) => line !== '')
}

/** After a failed run the API starts all the same, with earlier snapshots, if any. */
async function runPipeline(log: Log, signal: AbortSignal): Promise<void> {
  const ending = await runProgram('nightly.ts', ['run', '--with-sample', '--brief'], signal)
  if (!signal.aborted && ending['code'] !== 0)
    log.error(ending, 'pipeline run failed; serving the earlier snapshots')
}

async function welcomeAndSchedule({ origin, store }: Service, log: Log, signal: AbortSignal): Promise<void> {
  const firstKey = await createFirstKey(store, { account: FIRST_ACCOUNT, kind: 'inference', now: new Date() })
  const address = `${origin}${BASE_PATH}`
  const rankings = `${address}/datasets/app-rankings?limit=5`
  print(`
Address:  ${address}
Page:     ${origin}/ (reference: ${origin}/docs)
API key:  ${firstKey === undefined ? KEY_WAS_SHOWN : `${firstKey} (shown only now)`}
Try it:   curl -H 'Authorization: Bearer ${firstKey ?? '<API_KEY>'}' '${rankings}'
Ready: open ${origin}/ in a browser. Ctrl+C stops the service; its log follows.`)
  while (!signal.aborted) {
    // A run has just been made, so there is none to catch up on.
    const ending = await runProgram('schedule.ts', ['--no-catch-up'], signal)
    if (!signal.aborted) log.error(ending, 'nightly schedule ended; starting it again')
    await sleep(RESTART_DELAY_MS, undefined, { signal }).catch(() => undefined)
  }
}

/**
 * Runs a program of the pipeline as a child process, until it ends or `signal` ends it. Resolves to its exit code and
 * signal, one of them null, or to why it never started.
 */
async function runProgram(file: string, args: readonly string[], signal: AbortSignal) {
  const { promise, resolve } = Promise.withResolvers<Readonly<Record<string, unknown>>>()
  // Its output are messages, and stdout belongs to this process. The IPC channel carries nothing: it closes when this
  // process ends in any way, which the program detects.
  const child = spawn(process.execPath, [programPath(file), ...args], {
    stdio: ['ignore', 2, 2, 'ipc'],
    signal,
  })
  child.once('exit', (code, name) => resolve({ code, signal: name }))
  child.on('error', (error) => {
    // The signal is an error too, before the end.
    if (child.pid === undefined) resolve({ err: error })
  })
  return await promise
}

function programPath(file: string): string {
  return fileURLToPath(new URL(`../pipeline/${file}`, import.meta.url))
}
