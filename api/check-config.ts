/** Checks the configuration before a start: settings, files, permissions and the port (CONTRACT 9). */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { settingFaults, withoutSettings } from '../pipeline/program/settings.ts'
import { RAW_FOLDER, SNAPSHOTS_FOLDER } from '../pipeline/contract/files.ts'
import { PINNED_RUNTIME, VERSION } from '../pipeline/contract/version.ts'
import { readConfiguration } from './chat/configuration.ts'
import { readSettings, SETTINGS, type Settings } from './config.ts'
import { OperatorError } from './http/errors.ts'
import { addressFaults } from './http/server/http-server.ts'
import type { Log } from './process/log.ts'
import { dataFolderFaults, missingRights } from './process/rights.ts'
import { storeFaults } from './store/open-store.ts'

const PIPELINE = fileURLToPath(new URL('../pipeline/setting-faults.ts', import.meta.url))

/** The faults of the API's configuration and of the pipeline's settings, each once. */
export async function checkAll(environment: NodeJS.ProcessEnv): Promise<string[]> {
  // The API does not know the pipeline's settings.
  const pipeline = promisify(execFile)(process.execPath, [PIPELINE], { env: environment })
  const [{ stdout }, faults] = await Promise.all([pipeline, checkApi(environment)])
  return [...new Set([...faults, ...stdout.split('\n').filter((line) => line !== '')])]
}

/** @throws {OperatorError} that lists all faults. */
export function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0) throw new OperatorError(faults.join('\n'))
}

/** Logs what runs. */
export function logStart(log: Log): void {
  const { node } = process.versions
  log.info({ version: VERSION, node }, 'starting')
  if (node === PINNED_RUNTIME) return
  log.warn(
    `This runs on Node.js ${node}, but is tested with ${PINNED_RUNTIME}: npm ci installs that one, and npm scripts find it`,
  )
}

/** The faults of the API's configuration. Changes nothing. */
export async function checkApi(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const wrong = settingFaults(SETTINGS, environment)
  const settings = readSettings(withoutSettings(environment, wrong.keys()))
  const isRight = (...names: readonly (keyof Settings)[]) => names.every((name) => !wrong.has(name))
  const needed = isRight('DATA_DIR') ? folderFaults(settings) : []
  const [store, address, models] = await Promise.all([
    isRight('DATA_DIR', 'DATABASE_URL') ? storeFaults(settings) : [],
    isRight('HOST', 'PORT') ? addressFaults(settings.HOST, settings.PORT) : [],
    modelsFaults(settings.MODELS_FILE, environment),
  ])
  return [...new Set([...wrong.values(), ...store, ...needed, ...address, ...models])]
}

/** What the API reads of DATA_DIR, and where chat leaves its records, a sentence for each that it may not use. */
function folderFaults({ DATA_DIR, MODELS_FILE }: Settings): string[] {
  const records = MODELS_FILE === undefined ? [] : missingRights(join(DATA_DIR, RAW_FOLDER, 'usage'), [])
  return [
    ...dataFolderFaults(DATA_DIR, [SNAPSHOTS_FOLDER], 'read'),
    ...records.map((reason) => `Records of chat requests cannot be written: ${reason}`),
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
