/**
 * Checks the configuration of the pipeline without any work, for the programs that start it: prints `{ faults, warnings }`
 * as JSON.
 */
import './program/runtime.js'
import { join } from 'node:path'
import { pipelineSettings, readConfig } from './config.ts'
import { hostWarnings, settingFaults, withoutSettings, type ConfigCheck } from './program/config-check.ts'
import { wantsHelp, exitCodeOf, runAsProcess, type CommandLine } from './program/program.ts'
import { foreignKind } from './duckdb/foreign-files.ts'
import { WAREHOUSE_FILE } from './duckdb/warehouse.ts'
import { messageOf } from './errors.ts'
import { rightFaults } from './rights.ts'
import { currentSnapshot } from './snapshot/list.ts'

/** All faults of settings, files and rights, and the hosts that cannot be reached. Nothing is written. */
export async function checkPipeline(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ConfigCheck> {
  const wrong = settingFaults(pipelineSettings.shape, environment)
  const { dataDir, usageSource, webhook, successPing } = readConfig(
    withoutSettings(environment, wrong.keys()),
  )
  const hasFolder = !wrong.has('DATA_DIR')
  const hosts = { USAGE_SOURCE: usageSource?.url, NOTICE_WEBHOOK: webhook, SUCCESS_PING: successPing }
  const warnings = await Promise.all(
    Object.entries(hosts).flatMap(([name, url]) => (url === undefined ? [] : [hostWarnings(name, url)])),
  )
  return {
    faults: [...wrong.values(), ...(hasFolder ? rightFaults(dataDir) : [])],
    warnings: [...(hasFolder ? damage(dataDir) : []), ...warnings.flat()],
  }
}

/** Faults that stop each run. The API starts all the same and serves what is published. */
function damage(dataDir: string): string[] {
  const warehouse = join(dataDir, WAREHOUSE_FILE)
  const kind = foreignKind(warehouse)
  const foreign =
    kind === undefined
      ? []
      : [`${warehouse} is ${kind}: move it away; npm run nightly -- rebuild rebuilds the warehouse`]
  return [...foreign, ...pointerDamage(dataDir)]
}

function pointerDamage(dataDir: string): string[] {
  try {
    currentSnapshot(dataDir)
    return []
  } catch (error) {
    return [messageOf(error)]
  }
}

const HELP =
  'Checks the settings of the pipeline, its files and hosts, and prints the faults as JSON: npm run check-config'

/** Prints the faults and warnings; resolves to exit code 0, whatever it found. */
function run({ args, environment, print, note }: CommandLine): Promise<number> {
  return exitCodeOf({ note }, async () => {
    print(wantsHelp(args) ? HELP : JSON.stringify(await checkPipeline(environment)))
  })
}

if (import.meta.main) await runAsProcess(run)
