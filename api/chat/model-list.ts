/** The configured models for GET /models, in one form that OpenAI's clients and @openrouter/sdk both read. */
import { z } from 'zod'
import { MODELS_PATH } from '../paths.ts'
import type { Configuration, ModelDetails } from './configuration.ts'

/** The form of @openrouter/sdk has this for a price that varies or is not known. */
const UNKNOWN_PRICE = '-1'

export const modelSchema = z.looseObject({
  id: z.string().describe('`author/slug`.'),
  object: z.literal('model'),
  created: z.int().describe('When the configuration was written, Unix time in seconds.'),
  owned_by: z.string().describe('The author.'),
  name: z.string(),
  context_length: z
    .int()
    .nullable()
    .describe('Tokens of a request and its reply; null where it is not configured.'),
  max_completion_tokens: z.int().nullable().describe('Tokens of a reply; null where it is not configured.'),
  pricing: z
    .looseObject({ prompt: z.string(), completion: z.string() })
    .describe('US dollars per token, as decimal text; `-1` where no price is configured.'),
})

export const modelListSchema = z.strictObject({
  object: z.literal('list'),
  data: z.array(modelSchema),
  total_count: z.int(),
  links: z.strictObject({ next: z.null() }),
})

export function listModels(configuration: Configuration | undefined) {
  const data = [...(configuration?.models.keys() ?? [])].map((id) => describeModel(id, configuration))
  return { object: 'list', data, total_count: data.length, links: { next: null } }
}

/** One model; undefined if it is not configured. */
export function findModel(id: string, configuration: Configuration | undefined) {
  return configuration?.models.has(id) === true ? describeModel(id, configuration) : undefined
}

function describeModel(id: string, configuration: Configuration | undefined) {
  const details: ModelDetails = configuration?.details.get(id) ?? {}
  const { name = id, description, context_length = null, max_completion_tokens = null, pricing } = details
  return {
    id,
    object: 'model',
    created: configuration?.writtenAt ?? 0,
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
