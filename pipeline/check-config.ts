/**
 * Checks the configuration of the pipeline without any work, for the programs that start it: prints `{ faults, warnings }`
 * as JSON.
 */
import './program/runtime.js'
import { join } from 'node:path'
import { pipelineSettings, readConfig } from './config.ts'
import { RAW_FOLDER, SNAPSHOTS_FOLDER } from './contract/files.ts'
import { dataFolderFaults, hostWarnings, settingFaults, withoutSettings } from './program/config-check.ts'
import type { ConfigCheck } from './program/config-check.ts'
import { exitCodeOf, runAsProcess, type CommandLine } from './program/program.ts'
import { WAREHOUSE_FILE } from './duckdb/warehouse.ts'

/** What a run reads and writes in DATA_DIR. */
const USED = [
  WAREHOUSE_FILE,
  SNAPSHOTS_FOLDER,
  RAW_FOLDER,
  join(RAW_FOLDER, 'apps'),
  join(RAW_FOLDER, 'usage'),
]

/** All faults of settings, files and rights, and the hosts that cannot be reached. Nothing is written. */
async function checkPipeline(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ConfigCheck> {
  const wrong = settingFaults(pipelineSettings.shape, environment)
  const { dataDir, usageSource, webhook, successPing } = readConfig(
    withoutSettings(environment, wrong.keys()),
  )
  const hosts = { USAGE_SOURCE: usageSource?.url, NOTICE_WEBHOOK: webhook, SUCCESS_PING: successPing }
  const warnings = await Promise.all(
    Object.entries(hosts).flatMap(([name, url]) => (url === undefined ? [] : [hostWarnings(name, url)])),
  )
  return {
    faults: [...wrong.values(), ...(wrong.has('DATA_DIR') ? [] : dataFolderFaults(dataDir, USED))],
    warnings: warnings.flat(),
  }
}

function run({ environment, print, note }: CommandLine): Promise<number> {
  return exitCodeOf({ note }, async () => print(JSON.stringify(await checkPipeline(environment))))
}

if (import.meta.main) await runAsProcess(run)
