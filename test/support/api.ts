/** The API as its users see it: a server on a real socket, in this process or its own. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { daySchema } from '../../pipeline/contract/calendar.ts'
import { createKey, type KeyKind } from '../../api/accounts/keys.ts'
import { HTTP_LIMITS, type HttpLimits } from '../../api/http/server.ts'
import { createLog } from '../../api/process/log.ts'
import { BASE_PATH } from '../../api/paths.ts'
import { readSettings } from '../../api/config.ts'
import { serve, type ServeDependencies } from '../../api/serve.ts'
import { sendOver } from './connections.ts'
import { atEnd } from './folders.ts'
import { publish } from './pipeline/nightly.ts'
import { startProgram, type Started } from './processes.ts'

/** The body of a rankings reply for a strict client (CONTRACT 4.3). */
export const rankingsSchema = z.strictObject({
  data: z.array(
    z.strictObject({
      app_id: z.int(),
      app_name: z.string(),
      rank: z.int(),
      total_requests: z.int(),
      total_tokens: z.string().regex(/^\d+$/),
    }),
  ),
  meta: z.strictObject({
    as_of: z.iso.datetime({ precision: 0 }),
    start_date: daySchema,
    end_date: daySchema,
    version: z.literal('v1'),
  }),
})

/** The body of every error (CONTRACT 3). */
export const envelopeSchema = z.strictObject({
  error: z.strictObject({
    code: z.int(),
    message: z.string().min(1),
    metadata: z.record(z.string(), z.unknown()).nullable(),
  }),
  router_metadata: z.record(z.string(), z.unknown()).nullable(),
  user_id: z.string().nullable(),
})

/** In the form of a key, but nobody has it. */
export const UNKNOWN_KEY = `sk-inference-${'x'.repeat(43)}`

const logLineSchema = z.record(z.string(), z.unknown())

/** A log in memory. */
export function memoryLog() {
  const lines: string[] = []
  const log = createLog('debug', { write: (line: string) => void lines.push(line) })
  return { log, lines, messages: () => lines.map((line) => logLineSchema.parse(JSON.parse(line))) }
}

/** Requests paths under the base address of a service, with a key. */
export function clientOf(origin: string) {
  return (path: string, key?: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    if (key !== undefined) headers.set('Authorization', `Bearer ${key}`)
    return fetch(`${origin}${BASE_PATH}${path}`, { ...init, headers })
  }
}

export type ApiOptions = {
  readonly clock?: () => Date
  readonly limits?: Partial<HttpLimits>
  readonly environment?: Readonly<Record<string, string>>
  readonly sync?: NonNullable<ServeDependencies['sync']>
  readonly chat?: NonNullable<ServeDependencies['chat']>
}

/**
 * A running service over `dataDir` on a free port, with a short request function and its log in memory; it ends with the
 * test file, if not before.
 */
export async function startApi(
  dataDir: string,
  { clock = () => new Date(), limits, environment = {}, sync = {}, chat = {} }: ApiOptions = {},
) {
  const { log, lines, messages } = memoryLog()
  const service = await serve(readSettings({ DATA_DIR: dataDir, PORT: '0', ...environment }), {
    log,
    environment,
    sync,
    chat,
    clock,
    // No balancer asks in a test, even if the test does.
    limits: { ...HTTP_LIMITS, unreadyMs: 0, ...limits },
  })
  let closed: Promise<void> | undefined
  const close = () => (closed ??= service.close())
  atEnd(close)
  const createFor = (kind: KeyKind = 'inference', account = 'test') =>
    createKey(service.store, { account, kind, now: clock() })
  const get = clientOf(service.origin)
  return {
    ...service,
    base: `${service.origin}${BASE_PATH}`,
    lines,
    messages,
    close,
    [Symbol.asyncDispose]: close,
    makeKey: createFor,
    /** Requests a path under the base address. */
    get,
    /** Requests with a new key and account, so that no rate limit is shared. */
    getAsNewAccount: async (path: string, init: RequestInit = {}) =>
      get(path, await createFor('inference', randomUUID()), init),
  }
}

export type Api = Awaited<ReturnType<typeof startApi>>

/** Publishes the sample in an empty `dataDir`, and serves it at noon after its last day. */
export async function startSampleApi(dataDir: string): Promise<Api> {
  await publish(dataDir, '2026-09-01T02:00:00Z', '--with-sample')
  return await startApi(dataDir, { clock: () => new Date('2026-09-01T12:00:00Z') })
}

/** The body of GET /status, as far as tests read it. */
export const statusSchema = z.object({
  data: z.object({
    as_of: z.string().nullable(),
    retracted: z.array(z.unknown()),
    faults: z.array(z.object({ thing: z.string(), message: z.string() })),
  }),
})

/** What GET /status says of the served snapshot. */
export const statusOf = async (api: Api) => statusSchema.parse(await (await api.get('/status')).json()).data

/** Waits until the snapshot of this time is served; null for none. */
export const served = (api: Api, asOf: string | null) =>
  until(async () => (await statusOf(api)).as_of === asOf)

/** The targets of a reply's Link field by relation. */
export function linksOf({ headers }: Response): Readonly<Record<string, string | undefined>> {
  const links = (headers.get('Link') ?? '').matchAll(/<([^>]*)>; rel="([^"]+)"/g)
  return Object.fromEntries([...links].map(([, target, relation]) => [relation, target]))
}

/** Lets `handle` answer a path of a running service, for replies that no route gives. */
export function answerWith({ routes }: Api, path: string, handle: Api['routes'][number]['handle']): void {
  for (const route of routes.filter((each) => each.path === path)) Object.assign(route, { handle })
}

/** The server's answer to these exact bytes, and then `more` after its first ones, until it closes the connection. */
export async function sendRaw(origin: string, text: string, more = ''): Promise<string> {
  const socket = sendOver(origin, text)
  let answer = ''
  socket.setEncoding('utf8').on('data', (part: string) => (answer += part))
  if (more !== '') socket.once('data', () => socket.write(more))
  await once(socket, 'close')
  return answer
}

/**
 * The output of a program, once `pattern` is in it.
 * @throws Error with the output if the program ends without it.
 */
export async function said(
  { output, ended }: Started,
  stream: 'stdout' | 'stderr',
  pattern: RegExp,
): Promise<RegExpExecArray> {
  let code: number | null | undefined
  void ended.then((ending) => (code = ending.code))
  return await until(() => {
    const match = pattern.exec(output[stream])
    if (match === null && code !== undefined)
      throw new Error(`Ended with ${code}:\n${output.stdout}${output.stderr}`)
    return match ?? undefined
  })
}

/** The API as a process on a free port, once it listens; `through` as of startProgram. */
export async function startServer(
  environment: Readonly<Record<string, string>>,
  through: readonly string[] = [],
) {
  const program = startProgram('api/server.ts', [], { PORT: '0', ...environment }, through)
  const [, origin = ''] = await said(program, 'stderr', /"origin":"([^"]+)"/)
  return { ...program, origin, get: clientOf(origin) }
}

/** Creates a key with `npm run keys`. */
export async function makeKey(
  environment: Readonly<Record<string, string>>,
  kind: KeyKind = 'inference',
  account = 'a',
): Promise<string> {
  const args = ['create', '--account', account, '--kind', kind]
  return (await startProgram('api/commands/keys.ts', args, environment).ended).stdout.trim()
}

/** Waits until `probe` returns something other than undefined or false; the test's time limit bounds it. */
export async function until<Result>(
  probe: () => Result | undefined | false | Promise<Result | undefined | false>,
): Promise<Result> {
  for (;;) {
    const result = await probe()
    if (result !== undefined && result !== false) return result
    await sleep(10)
  }
}
