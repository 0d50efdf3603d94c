/** Entry point of `npm run serve`: the API alone. */
import '../pipeline/program/runtime.js'
import { settingsHelp } from '../pipeline/program/settings.ts'
import { SETTINGS } from './config.ts'
import { runEntry } from './run-entry.ts'

const USAGE = `npm run serve: the API over the published snapshots, without a run of the pipeline.

${settingsHelp(SETTINGS)}`

await runEntry(USAGE)
