/** Prints the faults of the pipeline's settings, a line each, for `npm start`, which reports them with its own. */
import './program/runtime.js'
import { PIPELINE_SETTINGS } from './config.ts'
import { settingFaults } from './program/settings.ts'
import { print } from './program/terminal.ts'

for (const fault of settingFaults(PIPELINE_SETTINGS, process.env).values()) print(fault)
