/** The servers of the bench, each in a separate process. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../support/ports.ts'
import { residentMegabytes } from './measure.ts'

const SERVER = fileURLToPath(new URL('../../api/server.ts', import.meta.url))

/**
 * The service over `dataDir`, as `npm run serve` starts it. Its log goes into a file: a pipe would have to be read
 * meanwhile, on the same processors.
 */
export async function startService(dataDir: string, environment: Readonly<Record<string, string>> = {}) {
  const logFile = join(dataDir, 'service.log')
  const log = openSync(logFile, 'w')
  const port = await freePort()
  const child = spawn(process.execPath, [SERVER], {
    env: { ...process.env, DATA_DIR: dataDir, PORT: String(port), DATABASE_URL: '', ...environment },
    stdio: ['ignore', log, log],
  })
  const origin = `http://127.0.0.1:${port}`
  const readLog = () => readFileSync(logFile, 'utf8')
  await untilAnswering(`${origin}/healthz`, child, readLog)
  return {
    child,
    origin,
    log: readLog,
    megabytes: () => residentMegabytes(child.pid),
    [Symbol.asyncDispose]: () => stop(child),
  }
}
export type RunningService = Awaited<ReturnType<typeof startService>>

/** Starts a file that prints its port once it listens. */
export async function startPrintingPort(
  file: URL,
  ...args: readonly string[]
): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const child = spawn(process.execPath, [fileURLToPath(file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
  return { child, port: Number(line) }
}

/**
 * Waits until the server answers with any status.
 * @throws with its `lastWords` if its process has ended.
 */
export async function untilAnswering(
  url: string,
  child: ChildProcess,
  lastWords = () => 'its process has ended',
): Promise<void> {
  while ((await fetch(url).catch(() => undefined)) === undefined) {
    if (hasEnded(child)) throw new Error(`The server at ${url} did not start: ${lastWords()}`)
    await sleep(20)
  }
}

/** Ends a server's process. */
export async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const ended = once(child, 'close')
  child.kill()
  await ended
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
