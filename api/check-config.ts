/** The faults of the configuration, which an entry point reports together at its start (CONTRACT 9). */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { RAW_FOLDER, SNAPSHOTS_FOLDER, WAREHOUSE_FILE } from '../pipeline/contract/files.ts'
import { failureText } from '../pipeline/program/program.ts'
import { settingFaults, withoutSettings } from '../pipeline/program/settings.ts'
import { readConfiguration } from './chat/configuration.ts'
import { CHECKSUMS_FILE, checksumOf } from './commands/backup.ts'
import { readSettings, SETTINGS, type Settings } from './config.ts'
import { addressFaults } from './http/server.ts'
import { missingRights } from './process/system-errors.ts'
import { storeFaults } from './store/open-store.ts'

const PIPELINE = fileURLToPath(new URL('../pipeline/setting-faults.ts', import.meta.url))

/** The faults of the API's configuration and of the pipeline's settings, each once. */
export async function checkAll(environment: NodeJS.ProcessEnv): Promise<string[]> {
  // The API does not know the pipeline's settings.
  const pipeline = promisify(execFile)(process.execPath, [PIPELINE], { env: environment })
  const [{ stdout }, faults] = await Promise.all([pipeline, checkApi(environment)])
  return [...new Set([...faults, ...stdout.split('\n').filter((line) => line !== '')])]
}

/** The faults of the API's configuration. Changes nothing. */
export async function checkApi(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const wrong = settingFaults(SETTINGS, environment)
  const settings = readSettings(withoutSettings(environment, wrong.keys()))
  const isRight = (...names: readonly (keyof Settings)[]) => names.every((name) => !wrong.has(name))
  const faults = await Promise.all([
    isRight('DATA_DIR', 'DATABASE_URL') ? storeFaults(settings) : [],
    isRight('DATA_DIR') ? dataFaults(settings) : [],
    isRight('HOST', 'PORT') ? addressFaults(settings.HOST, settings.PORT) : [],
    chatFaults(settings, environment),
  ])
  return [...new Set([...wrong.values(), ...faults.flat()])]
}

/** What the API may not read of DATA_DIR, and what it lacks of a backup. */
async function dataFaults({ DATA_DIR }: Settings): Promise<string[]> {
  const unreadable = missingRights([DATA_DIR, join(DATA_DIR, SNAPSHOTS_FOLDER)], 'read')
  if (unreadable.length === 0) return await restoreFaults(DATA_DIR)
  return unreadable.map((reason) => `DATA_DIR "${DATA_DIR}" cannot be used: ${reason}`)
}

/** What is wrong with the routing configuration, and where chat may not leave its records. */
async function chatFaults(
  { DATA_DIR, MODELS_FILE }: Settings,
  environment: NodeJS.ProcessEnv,
): Promise<string[]> {
  if (MODELS_FILE === undefined) return []
  const unwritable = missingRights([join(DATA_DIR, RAW_FOLDER, 'usage')], 'write')
  const faults = unwritable.map((reason) => `Records of chat requests cannot be written: ${reason}`)
  await readConfiguration(MODELS_FILE, environment).catch((error: unknown) => faults.push(failureText(error)))
  return faults
}

/** Which files of a restored backup differ from its list of checksums; a nightly run may change them. */
async function restoreFaults(dataDir: string): Promise<string[]> {
  const list = join(dataDir, CHECKSUMS_FILE)
  if (!existsSync(list) || existsSync(join(dataDir, WAREHOUSE_FILE))) return []
  const faults: string[] = []
  for (const line of readFileSync(list, 'utf8').trimEnd().split('\n')) {
    const [checksum, path = ''] = line.split(/ {2}(.*)/)
    const found = await checksumOf(join(dataDir, path)).catch(() => 'missing')
    if (found !== checksum)
      faults.push(`${join(dataDir, path)} is not the file of the backup: copy it again, or remove ${list}`)
  }
  return faults
}
