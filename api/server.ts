/** Entry of `npm run serve`: the API alone. */
import { settingsHelp } from '../pipeline/contract/settings.ts'
import { readSettings, SETTINGS } from './config.ts'
import {
  EXIT_USAGE,
  failureText,
  note,
  onReloadSignal,
  onStopSignal,
  takeNoArguments,
} from './process/entry.ts'
import { createLog } from './process/log.ts'
import { serve } from './serve.ts'

const USAGE = `npm run serve: the API over what was published, without a run of the pipeline.

${settingsHelp(SETTINGS)}`

try {
  takeNoArguments(USAGE)
  const settings = readSettings(process.env)
  const service = await serve(settings, { log: createLog(settings.LOG_LEVEL), environment: process.env })
  onStopSignal(() => void service.close())
  onReloadSignal(() => void service.reload())
} catch (error) {
  note(failureText(error))
  process.exit(EXIT_USAGE)
}
