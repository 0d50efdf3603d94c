/** The servers of the bench, each in a separate process. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { said, until } from '../support/api.ts'
import { freePort } from '../support/ports.ts'
import { startProcess, startProgram, type Started } from '../support/processes.ts'

/** A server's process, which `await using` ends. */
export type Server = AsyncDisposable & {
  readonly pid: number | undefined
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
  const log = join(dataDir, 'service.log')
  const PORT = String(await freePort())
  const settings = { DATA_DIR: dataDir, PORT, DATABASE_URL: '', ...environment }
  const service = startProgram('api/server.ts', [], settings, ['sh', '-c', `exec "$0" "$@" 2>'${log}'`])
  return untilAnswering(service, `http://127.0.0.1:${PORT}`, () => readFileSync(log, 'utf8'))
}

/** A server of the bench: a file that prints its port once it listens; `task` arrives as JSON argument. */
export async function startFile(file: URL, task: unknown = {}): Promise<Server> {
  const program = startProcess(process.execPath, [fileURLToPath(file), JSON.stringify(task)], {})
  const [port] = await said(program, 'stdout', /^\d+(?=\n)/)
  return serverOf(program, `http://127.0.0.1:${port}`)
}

/** @throws with the server's `lastWords` if its process has ended. */
export async function untilAnswering(
  program: Started,
  origin: string,
  lastWords = () => program.output.stderr,
): Promise<Server> {
  await until(async () => {
    if (program.child.exitCode !== null) throw new Error(`${origin} did not start: ${lastWords()}`)
    return await fetch(origin).catch(() => undefined)
  })
  return serverOf(program, origin)
}

function serverOf({ child }: Started, origin: string): Server {
  return {
    pid: child.pid,
    origin,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'close')
      child.kill()
      await ended
    },
  }
}
