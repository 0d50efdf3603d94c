/** The course of an entry point of the service: check, start, serve until a signal. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { RAW_FOLDER, SNAPSHOTS_FOLDER, WAREHOUSE_FILE } from '../pipeline/contract/files.ts'
import { PINNED_RUNTIME, VERSION } from '../pipeline/contract/version.ts'
import { exitCodeOf, failureText, runAsProcess, UsageError, wantsHelp } from '../pipeline/program/program.ts'
import { settingFaults } from '../pipeline/program/settings.ts'
import { firstFew } from '../pipeline/program/terminal.ts'
import { readConfiguration } from './chat/configuration.ts'
import { CHECKSUMS_FILE, checksumOf } from './commands/backup.ts'
import { readSettings, SETTINGS, type Settings } from './config.ts'
import { addressFaults } from './http/server.ts'
import { createLog, type Log } from './process/log.ts'
import { onReloadSignal, onStopSignal } from './process/signals.ts'
import { messageOf, missingRights } from './process/system-errors.ts'
import { serve, type Service } from './serve.ts'
import { storeFaults } from './store/open-store.ts'

type Environment = NodeJS.ProcessEnv

type Steps = {
  /** Resolves to further faults of the configuration, a sentence each. */
  readonly check?: (environment: Environment) => Promise<readonly string[]>
  readonly before?: (log: Log, signal: AbortSignal) => Promise<void>
  readonly after?: (service: Service, log: Log, signal: AbortSignal) => Promise<void>
}

/**
 * Runs an entry point, which takes no arguments but `--help`. Prints a failure, such as all faults of the configuration
 * together (CONTRACT 9), and exits with 2.
 */
export async function runEntry(usage: string, steps: Steps = {}): Promise<void> {
  await runAsProcess(async (line) => {
    const { args, environment, print } = line
    const code = await exitCodeOf(line, async () => {
      if (wantsHelp(args)) return print(usage)
      if (args.length > 0)
        throw new UsageError(
          `Unexpected argument "${args[0]}": settings come from the environment. See --help`,
        )
      const faults = await Promise.all([apiFaults(environment), steps.check?.(environment) ?? []])
      const sentences = new Set(faults.flat())
      if (sentences.size > 0) throw new UsageError([...sentences].join('\n'))
      await serveUntilStopped(readSettings(environment), steps)
    })
    // What was opened before a failure would keep the process.
    if (code !== 0) process.exit(code)
    return code
  })
}

async function serveUntilStopped(settings: Settings, { before, after }: Steps): Promise<void> {
  // Signals are listened for from the start, before anybody can hear of the process.
  const stopping = new AbortController()
  const { signal } = stopping
  let serving: Promise<Service> | undefined
  onStopSignal(() => stopping.abort())
  onReloadSignal(() => void serving?.then((service) => service.reload()))
  const log = createLog(settings.LOG_LEVEL)
  reportStart(settings, log)
  await before?.(log, signal)
  if (signal.aborted) return
  serving = serve(settings, { log, environment: process.env })
  const service = await serving
  if (signal.aborted) return await service.close()
  signal.addEventListener('abort', () => void service.close())
  await after?.(service, log, signal)
}

const RESTORED =
  'DATA_DIR was restored from a backup. Keys revoked and snapshots retracted after that backup are valid again: ' +
  'revoke and retract them once more'

function reportStart({ DATA_DIR }: Settings, log: Log): void {
  const { node } = process.versions
  log.info({ version: VERSION, node }, 'starting')
  if (node !== PINNED_RUNTIME)
    log.warn(`This runs on Node.js ${node}, but is tested with ${PINNED_RUNTIME}, which npm ci installs`)
  const checksums = join(DATA_DIR, CHECKSUMS_FILE)
  if (!existsSync(checksums)) return
  log.warn(RESTORED)
  // From here on files change: the list is of use for the first start alone.
  rmSync(checksums)
}

/** The faults of the API's settings, files, rights, port and database, a sentence each. Changes nothing. */
async function apiFaults(environment: Environment): Promise<string[]> {
  const wrong = settingFaults(SETTINGS, environment)
  const right = { ...environment }
  for (const name of wrong.keys()) delete right[name]
  const settings = readSettings(right)
  const isRight = (...names: readonly (keyof Settings)[]) => names.every((name) => !wrong.has(name))
  const snapshots = isRight('DATA_DIR') ? [join(settings.DATA_DIR, SNAPSHOTS_FOLDER)] : []
  const faults = await Promise.all([
    isRight('DATA_DIR', 'DATABASE_URL') ? storeFaults(settings) : [],
    isRight('HOST', 'PORT') ? addressFaults(settings.HOST, settings.PORT) : [],
    isRight('DATA_DIR') ? restoreFaults(settings) : [],
    chatFaults(settings, environment),
  ])
  return [...wrong.values(), ...faults.flat(), ...missingRights(snapshots, 'read')]
}

/** Which files of a restored backup differ from its list of checksums; a nightly run may change them. */
async function restoreFaults({ DATA_DIR }: Settings): Promise<string[]> {
  const list = join(DATA_DIR, CHECKSUMS_FILE)
  if (!existsSync(list) || existsSync(join(DATA_DIR, WAREHOUSE_FILE))) return []
  const faults: string[] = []
  for (const [, checksum, path = ''] of readFileSync(list, 'utf8').matchAll(/^(\w+) {2}(.+)$/gm)) {
    const file = join(DATA_DIR, path)
    if ((await checksumOf(file).catch(messageOf)) !== checksum)
      faults.push(
        `${file} is not the file of the backup: copy it again, or remove ${list} if it was changed since`,
      )
  }
  return firstFew(faults, 20)
}

/** What is wrong with the routing configuration, and where chat may not leave its records. */
async function chatFaults({ DATA_DIR, MODELS_FILE }: Settings, environment: Environment): Promise<string[]> {
  if (MODELS_FILE === undefined) return []
  const unwritable = missingRights([join(DATA_DIR, RAW_FOLDER, 'usage')], 'write')
  const faults = unwritable.map((reason) => `Records of chat requests cannot be written: ${reason}`)
  await readConfiguration(MODELS_FILE, environment).catch((error: unknown) => faults.push(failureText(error)))
  return faults
}
