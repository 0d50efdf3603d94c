/** Entry point of `npm run check-config`: reports all faults of the configuration at once (CONTRACT 9). */
import '../../pipeline/program/runtime.js'
import { settingsHelp } from '../../pipeline/program/settings.ts'
import {
  ProgramError,
  wantsHelp,
  exitCodeOf,
  parseCommandLine,
  runAsProcess,
  type CommandLine,
} from '../../pipeline/program/program.ts'
import { pluralize } from '../../pipeline/program/terminal.ts'
import { checkAll, providerWarnings } from '../check-config.ts'
import { SETTINGS } from '../config.ts'
import { OperatorError } from '../http/errors.ts'

const HELP = `Usage: npm run check-config

Checks settings, files, permissions, the port, and whether the hosts in the settings are reachable.
Nothing is changed. Stop the service first, or its port counts as taken.

${settingsHelp(SETTINGS)}
The settings of the pipeline count too: npm run nightly -- --help

Exit codes: 0 all is well, 1 the service would start but something is damaged or away,
2 it would not start`

/** The service would start, but something is damaged or unreachable. */
class WarningsError extends ProgramError {
  override readonly name = 'WarningsError'
  readonly exitCode = 1
}

/** Prints the faults; resolves to the exit code. */
export function checkConfig({ args, environment, print, note }: CommandLine): Promise<number> {
  return exitCodeOf({ note }, async () => {
    if (wantsHelp(args)) return print(HELP)
    parseCommandLine({ args: [...args], options: {} })
    const { faults, warnings: others } = await checkAll(environment)
    const warnings = [...others, ...(await providerWarnings(environment))]
    const lines = [...faults.map((text) => `fault    ${text}`), ...warnings.map((text) => `warning  ${text}`)]
    if (lines.length === 0) return print('The configuration is valid')
    print(lines.map((line) => line.replaceAll('\n', '\n         ')).join('\n'))
    const summary = `${pluralize(faults.length, 'fault')}, ${pluralize(warnings.length, 'warning')}`
    throw faults.length > 0 ? new OperatorError(summary) : new WarningsError(summary)
  })
}

if (import.meta.main) await runAsProcess(checkConfig)
