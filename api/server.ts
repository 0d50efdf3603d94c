/** Entry point of `npm run serve`: the API alone. */
import '../pipeline/program/runtime.js'
import { failureText } from '../pipeline/program/program.ts'
import { EXIT_USAGE, note } from '../pipeline/program/terminal.ts'
import { settingsHelp } from '../pipeline/program/settings.ts'
import { checkApi, logStart, refuseFaults } from './check-config.ts'
import { readSettings, SETTINGS } from './config.ts'
import { onReloadSignal, onStopSignal, takeNoArguments } from './process/entry.ts'
import { createLog } from './process/log.ts'
import { serve } from './serve.ts'

const USAGE = `npm run serve: the API over the published snapshots, without a run of the pipeline.

${settingsHelp(SETTINGS)}`

try {
  takeNoArguments(USAGE)
  refuseFaults(await checkApi(process.env))
  const settings = readSettings(process.env)
  const log = createLog(settings.LOG_LEVEL)
  logStart(log)
  const service = await serve(settings, { log, environment: process.env })
  onStopSignal(() => void service.close())
  onReloadSignal(() => void service.reload())
} catch (error) {
  note(failureText(error))
  process.exit(EXIT_USAGE)
}
