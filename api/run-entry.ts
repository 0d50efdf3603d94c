/** The course of an entry point of the service: check, start, serve until a signal. */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PINNED_RUNTIME, VERSION } from '../pipeline/contract/version.ts'
import { exitCodeOf, keepFilesPrivate, UsageError, wantsHelp } from '../pipeline/program/program.ts'
import { note, print } from '../pipeline/program/terminal.ts'
import { CHECKSUMS_FILE } from './commands/backup.ts'
import { readSettings, type Settings } from './config.ts'
import { OperatorError } from './http/errors.ts'
import { onReloadSignal, onStopSignal } from './process/entry.ts'
import { createLog, type Log } from './process/log.ts'
import { serve, type Service } from './serve.ts'

const RESTORED =
  'DATA_DIR was restored from a backup. Keys revoked and snapshots retracted after that backup are valid again: ' +
  'revoke and retract them once more'

interface Steps {
  /** Resolves to the faults of the configuration, a sentence each. */
  readonly check: (environment: NodeJS.ProcessEnv) => Promise<readonly string[]>
  readonly before?: (log: Log, signal: AbortSignal) => Promise<void>
  readonly after?: (service: Service, log: Log, signal: AbortSignal) => Promise<void>
}

/** Runs an entry point, which takes no arguments but `--help`. Prints a failure and exits with 2. */
export async function runEntry(usage: string, steps: Steps): Promise<void> {
  const args = process.argv.slice(2)
  const code = await exitCodeOf({ note }, async () => {
    keepFilesPrivate()
    if (wantsHelp(args)) return print(usage)
    if (args.length > 0)
      throw new UsageError(`Unexpected argument "${args[0]}": settings come from the environment\n\n${usage}`)
    const faults = await steps.check(process.env)
    if (faults.length > 0) throw new OperatorError(faults.join('\n'))
    await serveUntilStopped(readSettings(process.env), steps)
  })
  // What was opened before a failure would keep the process.
  if (code !== 0) process.exit(code)
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
