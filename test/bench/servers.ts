/** The servers of the bench, each in a separate process, which `await using` ends. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { said, until } from '../support/api.ts'
import { freePort } from '../support/ports.ts'
import { startProcess, startProgram, type Started } from '../support/processes.ts'

export type Server = Started & { readonly origin: string }

/**
 * The service over `dataDir`, as `npm run serve` starts it. Its log goes into a file: a pipe would have to be read
 * meanwhile, on the same processors.
 */
export async function startService(
  dataDir: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const log = join(dataDir, 'service.log')
  const port = await freePort()
  const settings = { DATA_DIR: dataDir, PORT: String(port), DATABASE_URL: '', ...environment }
  const service = startProgram('api/server.ts', [], settings, ['sh', '-c', `exec "$0" "$@" 2>'${log}'`])
  return untilAnswering(service, port, () => readFileSync(log, 'utf8'))
}

/** A server of the bench: a file that prints its port once it listens; `task` arrives as JSON argument. */
export async function startFile(file: URL, task: unknown = {}): Promise<Server> {
  const program = startProcess(process.execPath, [fileURLToPath(file), JSON.stringify(task)])
  const [port] = await said(program, 'stdout', /^\d+(?=\n)/)
  return { ...program, origin: `http://127.0.0.1:${port}` }
}

/** @throws with the server's `lastWords` if its process has ended. */
export async function untilAnswering(
  program: Started,
  port: number,
  lastWords = () => program.output.stderr,
): Promise<Server> {
  const origin = `http://127.0.0.1:${port}`
  await until(async () => {
    if (program.child.exitCode !== null) throw new Error(`${origin} did not start: ${lastWords()}`)
    return await fetch(origin).catch(() => undefined)
  })
  return { ...program, origin }
}
