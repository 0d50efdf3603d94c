/** The OpenAPI description of chat (CONTRACT 6). */
import { z } from 'zod'
import { ENVELOPE, type Operation, type Tag } from '../openapi/operation.ts'
import { modelListSchema, modelSchema } from './model-list.ts'
import { chatRequestSchema } from './request.ts'

const TAG = 'chat' satisfies Tag

const usageSchema = z.looseObject({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
})

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
  usage: usageSchema.describe('Counted by the provider; zeros if it reported none.'),
})

const MODEL_REPLIES = {
  200: { description: 'The model.', content: { 'application/json': modelSchema } },
  404: { description: 'No such model is configured.', content: ENVELOPE },
}

export const CHAT_OPERATIONS = {
  completions: {
    id: 'createChatCompletion',
    tag: TAG,
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
          'The completion. `X-App-Id` is the id of the app that the request names, or 0 if it names none.',
        headers: ['X-App-Id'],
        content: {
          'application/json': completionSchema.meta({ id: 'ChatCompletion' }),
          'text/event-stream': z.string(),
        },
      },
      400: {
        description:
          'The request is wrong, names an unknown model, or every provider rejected it: `metadata.error_type` names the reason.',
        content: ENVELOPE,
      },
      408: { description: 'Every attempt took too long.', content: ENVELOPE },
      413: { description: 'The body is too large.', content: ENVELOPE },
      415: {
        description: 'The body has an unsupported `Content-Encoding` or charset.',
        content: ENVELOPE,
      },
      429: { description: 'Every provider is rate-limited.', headers: ['Retry-After'], content: ENVELOPE },
      502: {
        description: 'The providers failed; `metadata.previous_errors` lists the attempts.',
        headers: ['Retry-After'],
        content: ENVELOPE,
      },
      503: { description: 'No provider is available.', headers: ['Retry-After'], content: ENVELOPE },
    },
  },
  models: {
    id: 'listModels',
    tag: TAG,
    summary: 'List the configured models',
    replies: { 200: { description: 'The models.', content: { 'application/json': modelListSchema } } },
  },
  model: {
    id: 'getModel',
    tag: TAG,
    summary: 'Show a configured model',
    path: {
      author: z.string().describe('The author of the model.'),
      slug: z.string().describe('Its name.'),
    },
    replies: MODEL_REPLIES,
  },
  modelByName: {
    id: 'getModelByName',
    tag: TAG,
    summary: 'Show a model by its name in one piece',
    path: { id: z.string().describe('`author/slug`, with its slash encoded.') },
    replies: MODEL_REPLIES,
  },
} as const satisfies Readonly<Record<string, Operation>>
