/** Details of a model in the routing configuration, for clients that query its limits and prices. */
import { z } from 'zod'

const tokens = z.int().min(1)
const price = z
  .string()
  .regex(/^\d+(?:\.\d+)?$/, 'must be US dollars per token as decimal text, such as "0.0000025"')

export const modelDetailsSchema = z.strictObject({
  name: z.string().min(1).optional(),
  description: z.string().optional(),
  context_length: tokens.optional(),
  max_completion_tokens: tokens.optional(),
  pricing: z
    .strictObject({
      prompt: price,
      completion: price,
      request: price.optional(),
      input_cache_read: price.optional(),
      input_cache_write: price.optional(),
      internal_reasoning: price.optional(),
    })
    .optional(),
})

export type ModelDetails = z.infer<typeof modelDetailsSchema>
