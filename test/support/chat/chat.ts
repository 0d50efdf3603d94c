/** The service with a routing configuration over scripted providers. */
import { writeFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { BASE_PATH } from '../../../api/paths.ts'
import { startApi } from '../api.ts'
import { TemporaryFolders } from '../pipeline/nightly.ts'
import { startUpstream, type Behaviour } from './upstream.ts'
import { readRecords } from './usage-records.ts'

interface ProviderWanted {
  readonly name?: string
  readonly base_url: string
  readonly model?: string
  readonly [more: string]: unknown
}

/** Models by name, with their providers. */
export type Wiring = Readonly<Record<string, readonly ProviderWanted[]>>

/** Writes a routing configuration; returns its path. */
export function writeModels(
  folder: string,
  wiring: Wiring,
  limits?: Readonly<Record<string, unknown>>,
): string {
  const models = Object.fromEntries(
    Object.entries(wiring).map(([model, providers]) => [
      model,
      { providers: providers.map((provider) => ({ name: 'acme', model, ...provider })) },
    ]),
  )
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'models.json')
  writeFileSync(path, JSON.stringify({ models, ...(limits && { limits }) }))
  return path
}

type ApiOptions = NonNullable<Parameters<typeof startApi>[1]>

interface ChatApiOptions extends ApiOptions {
  readonly dataDir?: string
  readonly modelLimits?: Readonly<Record<string, unknown>>
}

/** A service over `wiring` with a key. */
export async function startChat(
  folders: TemporaryFolders,
  wiring: Wiring,
  { dataDir = folders.make(), modelLimits, ...options }: ChatApiOptions = {},
) {
  const MODELS_FILE = writeModels(dataDir, wiring, modelLimits)
  const api = await startApi(dataDir, { ...options, environment: { MODELS_FILE, ...options.environment } })
  const key = await api.makeKey('inference')
  return {
    ...api,
    dataDir,
    key,
    /** Posts a chat request. */
    post(body: unknown, init: RequestInit = {}) {
      const headers = new Headers(init.headers)
      headers.set('Authorization', `Bearer ${key}`)
      if (!headers.has('Content-Type')) headers.set('Content-Type', 'application/json')
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return fetch(`${api.origin}${BASE_PATH}/chat/completions`, {
        method: 'POST',
        ...init,
        headers,
        body: text,
      })
    },
    [Symbol.asyncDispose]: () => api.close(),
  }
}

type Scripted = ProviderWanted & { readonly model: 'scripted' }

interface ScriptedChatOptions extends ChatApiOptions {
  /** The models of a single provider; by default `a/one`. */
  readonly wire?: (provider: Scripted) => Wiring
}

/** The fixed day of a scripted service: no midnight comes between a request and its record. */
const CHAT_DAY = '2026-03-10'

/** A service over one provider with a replaceable script. */
export async function startScriptedChat({
  wire = (provider) => ({ 'a/one': [provider] }),
  ...options
}: ScriptedChatOptions = {}) {
  const clock = () => new Date(`${CHAT_DAY}T12:00:00Z`)
  const folders = new TemporaryFolders()
  const upstream = await startUpstream({})
  const stop = async () => {
    await api.close()
    await upstream.close()
    folders.removeAll()
  }
  const api = await startChat(folders, wire({ base_url: upstream.url, model: 'scripted' }), {
    clock,
    ...options,
  })
  return {
    api,
    upstream,
    /** Replaces the provider's script. */
    script: (behaviour: Behaviour) => void (upstream.behaviours['scripted'] = behaviour),
    /** The usage records so far. */
    records: () => readRecords(api.dataDir, CHAT_DAY),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

export type ScriptedChat = Awaited<ReturnType<typeof startScriptedChat>>

export const MESSAGES = [{ role: 'user', content: 'Say hello' }] as const
