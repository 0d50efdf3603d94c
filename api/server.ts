/** Entry point of `npm run serve`: the API alone. */
import '../pipeline/program/runtime.js'
import { settingsHelp } from '../pipeline/program/settings.ts'
import { checkApi, runEntry } from './check-config.ts'
import { SETTINGS } from './config.ts'
import { onReloadSignal, stopSignal } from './process/entry.ts'
import { serve } from './serve.ts'

const USAGE = `npm run serve: the API over the published snapshots, without a run of the pipeline.

${settingsHelp(SETTINGS)}`

await runEntry(USAGE, checkApi, async (settings, log) => {
  const signal = stopSignal()
  const service = await serve(settings, { log, environment: process.env })
  if (signal.aborted) return await service.close()
  signal.addEventListener('abort', () => void service.close())
  onReloadSignal(() => void service.reload())
})
