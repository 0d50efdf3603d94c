/** The service with a routing configuration over a scripted provider, and the usage records that it writes. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { BASE_PATH } from '../../../api/paths.ts'
import { makeFolder } from '../folders.ts'
import { startApi, until, type ApiOptions } from '../api.ts'
import { answers, startUpstream, type Behaviour } from './upstream.ts'

type Members = Readonly<Record<string, unknown>>

/** Models by name, with the keys of their providers. */
type Models = Readonly<Record<string, readonly Members[]>>

/** Writes a routing configuration; returns its path. A provider is `acme` and knows a model by our name by default. */
export function writeModels(folder: string, wanted: Models, { limits, ...defaults }: Members = {}): string {
  const models = Object.fromEntries(
    Object.entries(wanted).map(([model, providers]) => [
      model,
      { providers: providers.map((provider) => ({ name: 'acme', model, ...defaults, ...provider })) },
    ]),
  )
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'models.json')
  writeFileSync(path, JSON.stringify({ models, limits }))
  return path
}

type ScriptedChatOptions = ApiOptions & {
  readonly dataDir?: string
  /** The members of `limits` in the routing configuration. */
  readonly modelLimits?: Members
  /** Its models, by default `a/one`; each provider is the scripted one, for its model `scripted`, by default. */
  readonly models?: Models
  /** What the provider does for its models: it serves `scripted` by default, and `script` replaces that. */
  readonly behaviours?: Readonly<Record<string, Behaviour>>
}

export const MESSAGES = [{ role: 'user', content: 'Say hello' }] as const
/** The request that `ask` sends. */
export const ONE = { model: 'a/one', messages: MESSAGES }
/** The fixed day of a scripted service: no midnight comes between a request and its record. */
export const CHAT_DAY = '2026-03-10'

/** A service over one provider with a replaceable script, and a key. */
export async function startScriptedChat({
  dataDir: given,
  modelLimits,
  models = { 'a/one': [{}] },
  behaviours = {},
  ...options
}: ScriptedChatOptions = {}) {
  const dataDir = given ?? makeFolder()
  const upstream = await startUpstream({ scripted: answers(), ...behaviours })
  const configure = (wanted: Models) =>
    writeModels(dataDir, wanted, { base_url: upstream.url, model: 'scripted', limits: modelLimits })
  const MODELS_FILE = configure(models)
  const service = await startApi(dataDir, {
    clock: () => new Date(`${CHAT_DAY}T12:00:00Z`),
    ...options,
    environment: { MODELS_FILE, ...options.environment },
  })
  const key = await service.makeKey('inference')
  /** Posts a chat request. */
  function post(body: unknown, init: RequestInit = {}): Promise<Response> {
    const headers = { 'Content-Type': 'application/json' }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return service.get('/chat/completions', key, { method: 'POST', headers, body: text, ...init })
  }
  const records = (id?: string) => readRecords(dataDir, CHAT_DAY, id)
  return {
    api: {
      ...service,
      dataDir,
      key,
      post,
      /** Posts the usual request with these members. */
      ask: (more: Members = {}, init?: RequestInit) => post({ ...ONE, ...more }, init),
      metrics: async () => await (await fetch(`${service.origin}/metrics`)).text(),
    },
    upstream,
    /** Replaces the provider's script. */
    script: (behaviour: Behaviour) => void (upstream.behaviours['scripted'] = behaviour),
    /** Replaces its models. */
    async configure(wanted: Models): Promise<void> {
      configure(wanted)
      await service.reload()
    },
    /** The usage records so far, or those of one request. */
    records,
    /** Waits until there are so many records; returns them. */
    untilRecords: (count = 1) => until(() => records().length === count && records()),
    /** The bytes of the usual request with these header lines and members. */
    rawRequest(lines: readonly string[], more: Members = {}): string {
      const body = JSON.stringify({ ...ONE, ...more })
      const head = [
        `POST ${BASE_PATH}/chat/completions HTTP/1.1`,
        `Host: ${new URL(service.origin).host}`,
        `Authorization: Bearer ${key}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        ...lines,
      ]
      return `${head.join('\r\n')}\r\n\r\n${body}`
    },
    async [Symbol.asyncDispose]() {
      await service.close()
      await upstream.close()
    },
  }
}

export type ScriptedChat = Awaited<ReturnType<typeof startScriptedChat>>

/** The text of a reply, also of one that breaks off; `onText` gets all of it after each new piece. */
export async function readText(response: Response, onText: (text: string) => void = () => undefined) {
  let text = ''
  try {
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part
      onText(text)
    }
    return { text, isBroken: false }
  } catch {
    return { text, isBroken: true }
  }
}

const recordSchema = z.looseObject({ ts: z.string(), request_id: z.string() })

/** Paths of a day's files that the pipeline reads. */
export function usageFiles(dataDir: string, day = CHAT_DAY): string[] {
  const folder = join(dataDir, 'raw', 'usage', `date=${day}`)
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter((name) => !/^[._]/.test(name))
  return names.map((name) => join(folder, name))
}

/** The records in a day's files, file by file and line by line, or those with an id. A line that is being written is none. */
export function readRecords(dataDir: string, day = CHAT_DAY, id = '') {
  return usageFiles(dataDir, day).flatMap((path) => {
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return lines.filter((line) => line.includes(id)).map((line) => recordSchema.parse(JSON.parse(line)))
  })
}
