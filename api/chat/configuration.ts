/** The routing configuration (CONTRACT 6): models and the providers that serve them. */
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { UsageError } from '../../pipeline/program/program.ts'
import type { Log } from '../process/log.ts'

/**
 * Hosts that stop generating, and billing, when the connection of a stream closes. Others bill the whole reply, so that
 * its usage is worth reading.
 */
const CANCELLING = (
  'api.openai.com openai.azure.com api.anthropic.com openrouter.ai api.deepseek.com api.x.ai api.fireworks.ai ' +
  'api.together.xyz api.together.ai api.deepinfra.com api.cohere.com api.cohere.ai api.novita.ai ' +
  'api.hyperbolic.xyz api.friendli.ai api.cloudflare.com llm.chutes.ai'
).split(' ')

/** Headers that the router or the connection sets. */
const RESERVED_HEADERS =
  /^(?:accept|accept-encoding|connection|content-length|content-type|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i

const milliseconds = z.int().min(1).max(86_400_000)
const tokens = z.int().min(1)
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
const headerValue = z.string().regex(/^[\x20-\x7e]*$/, 'must be printable ASCII')
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'is not a header name')
  .refine((name) => !RESERVED_HEADERS.test(name), 'is set by the service itself')
const price = z
  .string()
  .regex(/^\d+(?:\.\d+)?$/, 'must be US dollars per token as decimal text, such as "0.0000025"')

const baseUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http or https address' })
  .regex(/^[^?#]*$/, 'must end with its path: a query or fragment has no place in it')
  .regex(
    /^\w+:\/\/[^/@]*(?:\/|$)/,
    'must hold no user or password: name the variable of the key in api_key_env',
  )

/** How long a provider may take, in milliseconds. */
const timeoutsSchema = z.strictObject({
  /** To the first meaningful token of a stream. */
  first_token_ms: milliseconds.default(60_000),
  /** To the same, while the stream sends keep-alives: comments or empty chunks. */
  keep_alive_ms: milliseconds.default(180_000),
  /** Between two later parts of a stream. */
  idle_ms: milliseconds.default(60_000),
  /** For one whole reply. */
  total_ms: milliseconds.default(300_000),
})

const providerSchema = z.strictObject({
  name: z.string().regex(/^[\w.-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, underscores or dashes'),
  base_url: baseUrl,
  /** The provider's name for the model. */
  model: z.string().min(1),
  api_key_env: variable.optional(),
  /** A file with the key alone; a relative path begins at the folder of the configuration. */
  api_key_file: z.string().min(1).optional(),
  headers: z.record(headerName, z.union([headerValue, z.strictObject({ env: variable })])).default({}),
  timeouts: timeoutsSchema.prefault({}),
  /** Whether to request the usage of a stream: some providers reject the option. */
  include_usage: z.boolean().default(true),
  /** Fields of a request that are dropped, since the provider rejects them. */
  drop: z.array(z.string().min(1)).default([]),
  /** Whether a reply is cancelled or read to its end when its client disconnects. */
  on_leave: z.enum(['cancel', 'finish']).optional(),
})
type ProviderEntry = z.infer<typeof providerSchema>

/** A model: its providers, and details for clients that query its limits and prices. */
const modelSchema = z.strictObject({
  name: z.string().min(1).optional(),
  description: z.string().optional(),
  context_length: tokens.optional(),
  max_completion_tokens: tokens.optional(),
  pricing: z.object({ prompt: price, completion: price }).catchall(price).optional(),
  providers: z
    .array(providerSchema)
    .min(1, 'must name at least one provider')
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, {
      error: 'must name each provider once',
    }),
})

export type ModelDetails = Omit<z.infer<typeof modelSchema>, 'providers'>

const limitsSchema = z.strictObject({
  /** Maximum time of one request with all its attempts, in milliseconds. */
  total_ms: milliseconds.default(600_000),
  /** Maximum number of models in `models`. */
  models_per_request: z.int().min(1).max(100).default(10),
})

const fileSchema = z.strictObject({
  models: z.record(z.string().regex(/^[^\s/]+\/\S+$/, 'must have the form author/slug'), modelSchema),
  limits: limitsSchema.prefault({}),
})

/** One provider of one model. */
export type Provider = Readonly<ReturnType<typeof readProvider>>

/** The circuit breaker of a provider, with its rules in fallback.ts. */
type Health = {
  /** Whether the last attempts failed, the newest last. */
  failures: readonly boolean[]
  /** In ms of performance.now(); undefined while closed. From then on one request at a time probes whether it may close. */
  openUntil?: number | undefined
}

export type Configuration = Awaited<ReturnType<typeof readConfiguration>>

/** The current configuration, which an operator can reload. */
export type Models = Awaited<ReturnType<typeof openModels>>

/**
 * Opens the configuration at `path`.
 * @throws UsageError if it is invalid.
 */
export async function openModels(path: string | undefined, environment: NodeJS.ProcessEnv, log: Log) {
  async function read(): Promise<Configuration | undefined> {
    if (path === undefined) return undefined
    const configuration = await readConfiguration(path, environment)
    for (const warning of configuration.warnings) log.warn(warning)
    log.info({ models: configuration.models.size }, 'models configured')
    return configuration
  }

  const models = {
    /** Undefined without MODELS_FILE. */
    current: await read(),
    /** Reads the file again. If it is invalid, the current configuration stays, and the log has the reason. */
    async reload(): Promise<void> {
      try {
        models.current = await read()
      } catch (error) {
        if (!(error instanceof UsageError)) throw error
        log.error({ err: error }, 'models not reloaded; the current configuration stays')
      }
    },
  }
  return models
}

/**
 * Reads the configuration; keys and secret headers come from `environment`.
 * @throws UsageError that lists every fault of the file.
 */
export async function readConfiguration(path: string, environment: NodeJS.ProcessEnv) {
  const { json, writtenAt } = await readJsonFile(path)
  const parsed = fileSchema.safeParse(json)
  if (!parsed.success) throw faulty(path, describe(parsed.error))
  const { models, limits } = parsed.data
  /** A sentence for each configured provider that cannot be used. */
  const warnings: string[] = []
  const configured = Object.entries(models).map(([serves, model]) => {
    const providers = model.providers.flatMap((entry): Provider[] => {
      const missing: string[] = []
      const secret = (name: string, text = environment[name]) => {
        const value = text?.trim() ?? ''
        if (value === '' || !headerValue.safeParse(value).success) missing.push(name)
        return value
      }
      const provider = readProvider(entry, serves, secret, dirname(path))
      if (missing.length === 0) return [provider]
      const reason = `${missing.join(', ')} is not set or cannot be read, or is no text for a header`
      warnings.push(`${entry.name} of ${serves} is left out: ${reason}`)
      return []
    })
    return [serves, { ...model, providers }] as const
  })
  return { models: new Map(configured), limits, writtenAt, warnings }
}

/** The file's content and the time of its last change, in seconds of Unix time. */
async function readJsonFile(path: string): Promise<{ readonly json: unknown; readonly writtenAt: number }> {
  try {
    // One handle for both: the file may be replaced at any moment.
    await using file = await open(path)
    const { mtimeMs } = await file.stat()
    return { json: JSON.parse(await file.readFile('utf8')), writtenAt: Math.floor(mtimeMs / 1000) }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw faulty(path, error instanceof SyntaxError ? `it is not JSON: ${reason}` : reason, error)
  }
}

/** All faults, a line or two each; for an invalid key the reason. */
function describe(error: z.ZodError): string {
  const issues = error.issues.flatMap((issue) =>
    issue.code === 'invalid_key' ? issue.issues.map((inner) => ({ ...inner, path: issue.path })) : [issue],
  )
  return z.prettifyError({ issues })
}

function faulty(path: string, reason: string, cause?: unknown): UsageError {
  return new UsageError(`MODELS_FILE "${path}" cannot be used:\n${reason}`, { cause })
}

/** The provider as it is called for the model that it `serves`; `secret` notes what is missing, files begin at `folder`. */
function readProvider(
  { base_url, api_key_env, api_key_file, ...entry }: ProviderEntry,
  serves: string,
  secret: (name: string, text?: string) => string,
  folder: string,
) {
  // For this provider alone.
  const headers: Record<string, string> = {}
  if (api_key_env !== undefined) headers['authorization'] = `Bearer ${secret(api_key_env)}`
  if (api_key_file !== undefined) {
    const file = resolve(folder, api_key_file)
    headers['authorization'] = `Bearer ${secret(file, readText(file))}`
  }
  for (const [header, value] of Object.entries(entry.headers))
    headers[header.toLowerCase()] = typeof value === 'string' ? value : secret(value.env)
  const url = new URL(base_url.replace(/(?:\/+chat\/completions)?\/*$/, '/chat/completions'))
  const cancels = CANCELLING.some((host) => `.${url.hostname}`.endsWith(`.${host}`))
  const onLeave = entry.on_leave ?? (cancels ? 'cancel' : 'finish')
  const health: Health = { failures: [] }
  return { ...entry, serves, url, headers, on_leave: onLeave, health }
}

/** The text of a file; empty if it cannot be read. */
function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
