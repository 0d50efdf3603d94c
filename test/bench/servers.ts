/** The servers of the bench, each in a separate process. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '../support/api.ts'
import { freePort } from '../support/ports.ts'

const SERVER = fileURLToPath(new URL('../../api/server.ts', import.meta.url))

/** A server's process, which `await using` ends. */
export interface Server extends AsyncDisposable {
  readonly child: ChildProcess
  readonly origin: string
}

/**
 * The service over `dataDir`, as `npm run serve` starts it. Its log goes into a file: a pipe would have to be read
 * meanwhile, on the same processors.
 */
export async function startService(
  dataDir: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const logFile = join(dataDir, 'service.log')
  const log = openSync(logFile, 'w')
  const port = await freePort()
  const child = spawn(process.execPath, [SERVER], {
    env: { ...process.env, DATA_DIR: dataDir, PORT: String(port), DATABASE_URL: '', ...environment },
    stdio: ['ignore', log, log],
  })
  return untilAnswering(child, `http://127.0.0.1:${port}`, () => readFileSync(logFile, 'utf8'))
}

/** A server of the bench: a file that prints its port once it listens; `task` arrives as JSON argument. */
export async function startFile(file: URL, task: unknown = {}): Promise<Server> {
  const child = spawn(process.execPath, [fileURLToPath(file), JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const printed = once(child.stdout.setEncoding('utf8'), 'data')
  const [port] = await Promise.race([printed, once(child, 'close')])
  return serverOf(child, `http://127.0.0.1:${Number(port)}`)
}

/** @throws with the server's `lastWords` if its process has ended. */
export async function untilAnswering(
  child: ChildProcess,
  origin: string,
  lastWords = () => 'its process has ended',
): Promise<Server> {
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`The server at ${origin} did not start: ${lastWords()}`)
    return await fetch(origin).catch(() => undefined)
  })
  return serverOf(child, origin)
}

function serverOf(child: ChildProcess, origin: string): Server {
  return {
    child,
    origin,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'close')
      child.kill()
      await ended
    },
  }
}
