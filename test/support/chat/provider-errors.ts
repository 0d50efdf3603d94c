/** Forms of providers' error replies. */

export const openai = (message: string, more: Readonly<Record<string, unknown>> = {}) => ({
  error: { message, type: 'invalid_request_error', param: null, code: null, ...more },
})

/** Google's OpenAI-compatible API: in a list. */
export const google = (error: Readonly<Record<string, unknown>>) => [{ error }]

export const anthropic = (type: string, message: string) => ({ type: 'error', error: { type, message } })

export const vllm = (message: string) => ({
  object: 'error',
  message,
  type: 'BadRequestError',
  param: null,
  code: 400,
})
