/** Checks the configuration: settings, files, permissions, the port and the required hosts (CONTRACT 9). */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  configCheckSchema,
  dataFolderFaults,
  hostWarnings,
  missingRights,
  settingFaults,
  withoutSettings,
  type ConfigCheck,
} from '../pipeline/program/config-check.ts'
import { RAW_FOLDER, SNAPSHOTS_FOLDER } from '../pipeline/contract/files.ts'
import { PINNED_RUNTIME, VERSION } from '../pipeline/contract/version.ts'
import { readConfiguration } from './chat/configuration.ts'
import { readSettings, SETTINGS, type Settings } from './config.ts'
import { OperatorError } from './http/errors.ts'
import { addressFaults } from './http/server/http-server.ts'
import type { Log } from './process/log.ts'
import { storeFaults } from './store/open-store.ts'

const PIPELINE = fileURLToPath(new URL('../pipeline/check-config.ts', import.meta.url))

/** The faults of the API's and the pipeline's configuration, each once. */
export async function checkAll(environment: NodeJS.ProcessEnv): Promise<ConfigCheck> {
  const checks = await Promise.all([checkPipeline(environment), checkApi(environment)])
  const merged = (kind: keyof ConfigCheck) => [...new Set(checks.flatMap((check) => check[kind]))]
  return { faults: merged('faults'), warnings: merged('warnings') }
}

/** @throws {OperatorError} that lists all faults. */
export function refuseFaults({ faults }: ConfigCheck): void {
  if (faults.length > 0) throw new OperatorError(faults.join('\n'))
}

/** Logs what runs, and the warnings of the check. */
export function logStart(log: Log, { warnings }: ConfigCheck): void {
  log.info({ version: VERSION, node: process.versions.node }, 'starting')
  for (const warning of warnings) log.warn(warning)
}

/** The pipeline checks its own configuration in a process, since the API does not know it. */
async function checkPipeline(environment: NodeJS.ProcessEnv): Promise<ConfigCheck> {
  const { stdout } = await promisify(execFile)(process.execPath, [PIPELINE], { env: environment })
  return configCheckSchema.parse(JSON.parse(stdout))
}

/** The faults of the API's configuration. Changes nothing. */
export async function checkApi(environment: NodeJS.ProcessEnv): Promise<ConfigCheck> {
  const wrong = settingFaults(SETTINGS, environment)
  const settings = readSettings(withoutSettings(environment, wrong.keys()))
  const isRight = (...names: readonly (keyof Settings)[]) => names.every((name) => !wrong.has(name))
  const needed = isRight('DATA_DIR') ? folderFaults(settings) : []
  const [store, address, models, notices] = await Promise.all([
    isRight('DATA_DIR', 'DATABASE_URL') ? storeFaults(settings) : [],
    isRight('HOST', 'PORT') ? addressFaults(settings.HOST, settings.PORT) : [],
    modelsFaults(settings.MODELS_FILE, environment),
    settings.NOTICE_WEBHOOK === undefined ? [] : hostWarnings('NOTICE_WEBHOOK', settings.NOTICE_WEBHOOK),
  ])
  return {
    faults: [...new Set([...wrong.values(), ...store, ...needed, ...address, ...models])],
    warnings: [...runtimeWarnings(), ...notices],
  }
}

/** What the API reads of DATA_DIR, and where chat leaves its records, a sentence for each that it may not use. */
function folderFaults({ DATA_DIR, MODELS_FILE }: Settings): string[] {
  const records = MODELS_FILE === undefined ? [] : missingRights(join(DATA_DIR, RAW_FOLDER, 'usage'), [])
  return [
    ...dataFolderFaults(DATA_DIR, [SNAPSHOTS_FOLDER], 'read'),
    ...records.map((reason) => `Records of chat requests cannot be written: ${reason}`),
  ]
}

function runtimeWarnings(): string[] {
  if (process.versions.node === PINNED_RUNTIME) return []
  return [
    `This runs on Node.js ${process.versions.node}, but is tested with ${PINNED_RUNTIME}: npm ci installs that one, and npm ` +
      'scripts find it',
  ]
}

async function modelsFaults(file: string | undefined, environment: NodeJS.ProcessEnv): Promise<string[]> {
  try {
    if (file !== undefined) await readConfiguration(file, environment)
    return []
  } catch (error) {
    if (error instanceof OperatorError) return [error.message]
    throw error
  }
}

/** Chat providers that are left out or unreachable; none if MODELS_FILE itself is invalid. */
export async function providerWarnings(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const file = environment['MODELS_FILE']
  if (!file || (await modelsFaults(file, environment)).length > 0) return []
  const { models, warnings } = await readConfiguration(file, environment)
  const origins = new Set([...models.values()].flat().map(({ url }) => url.origin))
  const away = await Promise.all(Array.from(origins, (origin) => hostWarnings('MODELS_FILE', origin)))
  return [...warnings, ...away.flat()]
}
