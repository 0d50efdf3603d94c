/** How an entry point of the service begins: it reports all faults of its configuration together (CONTRACT 9). */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { RAW_FOLDER, SNAPSHOTS_FOLDER, WAREHOUSE_FILE } from '../pipeline/contract/files.ts'
import { PINNED_RUNTIME, VERSION } from '../pipeline/contract/version.ts'
import {
  exitCodeOf,
  failureText,
  keepFilesPrivate,
  UsageError,
  wantsHelp,
} from '../pipeline/program/program.ts'
import { settingFaults, withoutSettings } from '../pipeline/program/settings.ts'
import { note, print } from '../pipeline/program/terminal.ts'
import { readConfiguration } from './chat/configuration.ts'
import { CHECKSUMS_FILE, checksumOf } from './commands/backup.ts'
import { readSettings, SETTINGS, type Settings } from './config.ts'
import { OperatorError } from './http/errors.ts'
import { addressFaults } from './http/server.ts'
import { createLog, type Log } from './process/log.ts'
import { missingRights } from './process/rights.ts'
import { storeFaults } from './store/open-store.ts'

const PIPELINE = fileURLToPath(new URL('../pipeline/setting-faults.ts', import.meta.url))

const RESTORED =
  'DATA_DIR was restored from a backup. Keys revoked and snapshots retracted after that backup are valid again: ' +
  'revoke and retract them once more'

/**
 * Runs an entry point, which takes no arguments but `--help`: checks the configuration, then starts the service. Prints a
 * failure and exits with 2.
 * @param check resolves to the faults of the configuration, a sentence each.
 */
export async function runEntry(
  usage: string,
  check: (environment: NodeJS.ProcessEnv) => Promise<readonly string[]>,
  start: (settings: Settings, log: Log) => Promise<void>,
): Promise<void> {
  const args = process.argv.slice(2)
  const code = await exitCodeOf({ note }, async () => {
    keepFilesPrivate()
    if (wantsHelp(args)) return print(usage)
    if (args.length > 0)
      throw new UsageError(`Unexpected argument "${args[0]}": settings come from the environment\n\n${usage}`)
    const faults = await check(process.env)
    if (faults.length > 0) throw new OperatorError(faults.join('\n'))
    const settings = readSettings(process.env)
    const log = createLog(settings.LOG_LEVEL)
    reportStart(settings, log)
    await start(settings, log)
  })
  // What was opened before a failure would keep the process.
  if (code !== 0) process.exit(code)
}

function reportStart({ DATA_DIR }: Settings, log: Log): void {
  const { node } = process.versions
  log.info({ version: VERSION, node }, 'starting')
  if (node !== PINNED_RUNTIME)
    log.warn(`This runs on Node.js ${node}, but is tested with ${PINNED_RUNTIME}, which npm ci installs`)
  const checksums = join(DATA_DIR, CHECKSUMS_FILE)
  if (!existsSync(checksums)) return
  // From here on files change: the list is of use for the first start alone.
  rmSync(checksums)
  log.warn(RESTORED)
}

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
    modelsFaults(settings.MODELS_FILE, environment),
  ])
  return [...new Set([...wrong.values(), ...faults.flat()])]
}

/** What the API may not read of DATA_DIR, and where chat may not leave its records. */
async function dataFaults({ DATA_DIR, MODELS_FILE }: Settings): Promise<string[]> {
  const unreadable = missingRights([DATA_DIR, join(DATA_DIR, SNAPSHOTS_FOLDER)], 'read')
  const records = MODELS_FILE === undefined ? [] : [join(DATA_DIR, RAW_FOLDER, 'usage')]
  return [
    ...unreadable.map((reason) => `DATA_DIR "${DATA_DIR}" cannot be used: ${reason}`),
    ...missingRights(records, 'write').map(
      (reason) => `Records of chat requests cannot be written: ${reason}`,
    ),
    ...(unreadable.length === 0 ? await restoreFaults(DATA_DIR) : []),
  ]
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

async function modelsFaults(file: string | undefined, environment: NodeJS.ProcessEnv): Promise<string[]> {
  if (file === undefined) return []
  return await readConfiguration(file, environment).then(
    () => [],
    (error: unknown) => [failureText(error)],
  )
}
