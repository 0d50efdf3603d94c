/**
 * Entry point of `npm start`, the main job on a fresh machine (CONTRACT 9): one pipeline run, then the API with the
 * nightly schedule, and a first request to try.
 */
import '../pipeline/program/runtime.js'
import { settingsHelp } from '../pipeline/program/settings.ts'
import { print } from '../pipeline/program/terminal.ts'
import { createFirstKey } from './accounts/key-store.ts'
import { keepRunning, runProgram } from './process/child-processes.ts'
import { checkAll, runEntry } from './check-config.ts'
import { SETTINGS, type Settings } from './config.ts'
import { onReloadSignal, stopSignal } from './process/entry.ts'
import type { Log } from './process/log.ts'
import { BASE_PATH } from './paths.ts'
import { serve } from './serve.ts'

const NIGHTLY = new URL('../pipeline/nightly.ts', import.meta.url)
const SCHEDULE = new URL('../pipeline/schedule.ts', import.meta.url)

const RESTART_DELAY_MS = 5000
const FIRST_ACCOUNT = 'default'
const KEY_WAS_SHOWN =
  'the first one was shown when it was created; for another one: ' +
  `npm run -s keys -- create --account ${FIRST_ACCOUNT} --kind inference`

const USAGE = `npm start: one run of the pipeline, then the API with the nightly schedule beside it.

${settingsHelp(SETTINGS)}
The settings of the pipeline count too: npm run nightly -- --help`

await runEntry(USAGE, checkAll, start)

async function start(settings: Settings, log: Log): Promise<void> {
  const signal = stopSignal()
  const ending = await runProgram(NIGHTLY, ['run', '--with-sample', '--brief'], signal)
  if (signal.aborted) return
  // After a failed run the API starts all the same, with earlier snapshots, if any.
  if (ending['code'] !== 0) log.error(ending, 'pipeline run failed; serving the earlier snapshots')

  const service = await serve(settings, { log, environment: process.env })
  if (signal.aborted) return await service.close()
  signal.addEventListener('abort', () => void service.close())
  onReloadSignal(() => void service.reload())
  const wanted = { account: FIRST_ACCOUNT, kind: 'inference', now: new Date() } as const
  const firstKey = await createFirstKey(service.store, wanted)
  if (signal.aborted) return
  print(welcome(service.origin, firstKey))
  // A run has just been made, so there is none to catch up on.
  await keepRunning(SCHEDULE, ['--no-catch-up'], {
    delayMs: RESTART_DELAY_MS,
    onEnd: (end) => log.error(end, 'nightly schedule ended; starting it again'),
    signal,
  })
}

function welcome(origin: string, firstKey: string | undefined): string {
  const address = `${origin}${BASE_PATH}`
  const keyLine = firstKey === undefined ? KEY_WAS_SHOWN : `${firstKey} (shown only now)`
  const request = `curl -H 'Authorization: Bearer ${firstKey ?? '<API_KEY>'}' '${address}/datasets/app-rankings?limit=5'`
  return `\nAddress:  ${address}\nPage:     ${origin}/ (reference: ${origin}/docs)\nAPI key:  ${keyLine}\nTry it:   ${request}\nReady: open ${origin}/ in a browser. Ctrl+C stops the service; its log follows.`
}
