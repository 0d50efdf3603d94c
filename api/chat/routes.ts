/** Chat over HTTP: completions and the list of models, with their OpenAPI descriptions (CONTRACT 6). */
import { z } from 'zod'
import { sendJson, type Handler } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import type { Route } from '../http/route.ts'
import { fault, type Operation } from '../openapi/operation.ts'
import { COMPLETIONS_PATH, MODELS_PATH } from '../paths.ts'
import { shorten } from '../untrusted/json.ts'
import type { Configuration, ModelDetails } from './configuration.ts'
import { chatRequestSchema, beginReply } from './request.ts'
import type { Chat } from './service.ts'

export function chatRoutes({ models, complete: handle }: Chat): Route[] {
  const showModel: Handler = ({ params }, reply) => {
    const id = [params['author'], params['slug'], params['id']].filter((one) => one !== undefined).join('/')
    const model = listModels(models.current).data.find((one) => one.id === id)
    if (model === undefined)
      throw new ApiError(404, `Unknown model: "${shorten(id)}"; ${MODELS_PATH} lists the models`)
    sendJson(reply, 200, model)
  }
  const open = { method: 'GET', access: 'open' } as const
  const showModels: Handler = (_request, reply) => sendJson(reply, 200, listModels(models.current))
  const { completions, list, model, modelByName } = OPERATIONS
  const chat = { method: 'POST', access: 'inference', slow: true, begin: beginReply } as const
  return [
    { ...chat, path: COMPLETIONS_PATH, operation: completions, handle },
    { ...open, path: MODELS_PATH, operation: list, handle: showModels },
    { ...open, path: `${MODELS_PATH}/:author/:slug`, operation: model, handle: showModel },
    // Clients encode the slash in a name (openai.models.retrieve).
    { ...open, path: `${MODELS_PATH}/:id`, operation: modelByName, handle: showModel },
  ]
}

/** The form of @openrouter/sdk has this for a price that varies or is not known. */
const UNKNOWN_PRICE = '-1'

const modelSchema = z.looseObject({
  id: z.string().describe('`author/slug`.'),
  object: z.literal('model'),
  created: z.int().describe('When the configuration was written, Unix time in seconds.'),
  owned_by: z.string().describe('The author.'),
  name: z.string(),
  context_length: z.int().nullable().describe('Tokens of a request with its reply; null if not configured.'),
  max_completion_tokens: z.int().nullable().describe('Tokens of a reply; null where it is not configured.'),
  pricing: z
    .looseObject({ prompt: z.string(), completion: z.string() })
    .describe('US dollars per token, as decimal text; `-1` where no price is configured.'),
})

const modelListSchema = z.strictObject({
  object: z.literal('list'),
  data: z.array(modelSchema),
  total_count: z.int(),
  links: z.strictObject({ next: z.null() }),
})

function listModels(configuration: Configuration | undefined) {
  const models = [...(configuration?.models.entries() ?? [])]
  const data = models.map(([id, details]) => describeModel(id, details, configuration?.writtenAt ?? 0))
  return { object: 'list', data, total_count: data.length, links: { next: null } }
}

function describeModel(id: string, details: ModelDetails, created: number) {
  const { name = id, description, context_length = null, max_completion_tokens = null, pricing } = details
  return {
    id,
    object: 'model',
    created,
    owned_by: id.slice(0, id.indexOf('/')),
    canonical_slug: id,
    name,
    ...(description !== undefined && { description }),
    context_length,
    max_completion_tokens,
    pricing: { prompt: UNKNOWN_PRICE, completion: UNKNOWN_PRICE, ...pricing },
    top_provider: { context_length, max_completion_tokens, is_moderated: false },
    architecture: { modality: 'text->text', input_modalities: ['text'], output_modalities: ['text'] },
    supported_parameters: [],
    supported_voices: null,
    default_parameters: null,
    per_request_limits: null,
    links: { details: `${MODELS_PATH}/${id}` },
  }
}

const completionSchema = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int().describe('Unix time in seconds.'),
  model: z.string().describe('The model that answered, `author/slug`.'),
  provider: z.string().describe('The provider that served it.'),
  system_fingerprint: z.string().nullable(),
  choices: z.array(
    z.looseObject({
      index: z.int(),
      message: z.looseObject({
        role: z.literal('assistant'),
        content: z.string().nullable(),
        tool_calls: z.array(z.looseObject({ id: z.string(), type: z.string() })).optional(),
      }),
      finish_reason: z.string().nullable(),
    }),
  ),
  usage: z
    .looseObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() })
    .describe('Counted by the provider; zeros if it reported none.'),
})

const ofModel = {
  tag: 'chat',
  replies: {
    200: { description: 'The model.', content: { 'application/json': modelSchema } },
    404: fault('No such model is configured.'),
  },
} as const

const OPERATIONS = {
  completions: {
    id: 'createChatCompletion',
    tag: 'chat',
    summary: 'Complete a chat, with fallback',
    description:
      'The chat completions of the OpenAI API. The providers of `model` are tried in order, then the providers of ' +
      '`models`; `provider` chooses among them. With `stream: true` the reply is a stream of ' +
      '`chat.completion.chunk`; the last chunk before `[DONE]` holds `finish_reason` and `usage` (in a chunk of ' +
      'its own with `stream_options.include_usage`), and a stream that fails on the way breaks off after a chunk ' +
      'with an `error`. `HTTP-Referer`, `X-Title` and `X-…-Categories` name the app the request belongs to. With ' +
      '`X-Router-Metadata: enabled` the reply lists its attempts and the app it was counted for.',
    body: chatRequestSchema,
    replies: {
      200: {
        description:
          'The completion. `X-App-Id`, of errors too, is the id of the app that the request names, or 0 if it names none.',
        headers: ['X-App-Id'],
        content: {
          'application/json': completionSchema.meta({ id: 'ChatCompletion' }),
          'text/event-stream': z.string(),
        },
      },
      400: fault(
        'The request is wrong, or every provider rejected it: `metadata.error_type` names the reason.',
      ),
      408: fault('Every attempt took too long.'),
      413: fault('The body is too large.'),
      415: fault('The body has an unsupported `Content-Encoding`.'),
      429: fault('Every provider is rate-limited.', ['Retry-After']),
      502: fault('The providers failed; `metadata.previous_errors` lists the attempts.', ['Retry-After']),
      503: fault('No provider is available.', ['Retry-After']),
    },
  },
  list: {
    id: 'listModels',
    tag: 'chat',
    summary: 'List the configured models',
    replies: { 200: { description: 'The models.', content: { 'application/json': modelListSchema } } },
  },
  model: {
    ...ofModel,
    id: 'getModel',
    summary: 'Show a configured model',
    path: { author: z.string().describe('The author of the model.'), slug: z.string().describe('Its name.') },
  },
  modelByName: {
    ...ofModel,
    id: 'getModelByName',
    summary: 'Show a model by its name in one piece',
    path: { id: z.string().describe('`author/slug`, with its slash encoded.') },
  },
} as const satisfies Readonly<Record<string, Operation>>
