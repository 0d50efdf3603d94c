/** CONTRACT 6: what the errors of providers mean, after public reports and documentation. */
import { describeCases, does, type Outcome } from '../../support/chat/provider-case.ts'
import { anthropic, google, openai, vllm } from '../../support/chat/provider-errors.ts'
import { status } from '../../support/chat/upstream.ts'

const BROKEN: Outcome = { status: 502, type: 'provider_unavailable', retryAfter: '5', backup: true }
const refusal = (type: string): Outcome => ({ status: 400, type, retryAfter: null, backup: true })

const MEANINGS = {
  operator: BROKEN,
  overloaded: BROKEN,
  failed: BROKEN,
  invalidReply: BROKEN,
  // Waiting does not help.
  quota: { ...BROKEN, retryAfter: null },
  rateLimited: { status: 429, type: 'rate_limit_exceeded', backup: true },
  timeout: { status: 408, type: 'timeout', retryAfter: null, backup: true },
  malformed: refusal('invalid_request'),
  tooLong: refusal('context_length_exceeded'),
  tooLarge: refusal('payload_too_large'),
  filtered: refusal('content_policy_violation'),
} as const satisfies Readonly<Record<string, Outcome>>
type Meaning = keyof typeof MEANINGS

const ERRORS: readonly (readonly [string, number, unknown, Meaning])[] = [
  [
    'Gemini: no billing',
    400,
    google({ status: 'FAILED_PRECONDITION', message: 'Please enable billing on your project.' }),
    'operator',
  ],
  [
    'xAI: a prompt too long',
    400,
    { error: "This model's maximum prompt length is 131072 but the request contains 200000 tokens." },
    'tooLong',
  ],
  [
    'Anthropic: a limit of use',
    400,
    anthropic('invalid_request_error', 'You have reached your specified API usage limits.'),
    'quota',
  ],
  [
    'Anthropic: too many tokens asked for',
    400,
    anthropic(
      'invalid_request_error',
      'max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens',
    ),
    'malformed',
  ],
  [
    'OpenAI: images',
    400,
    openai('Invalid content type. image_url is only supported by certain models.'),
    'malformed',
  ],
  [
    'Azure: a volume used up',
    403,
    { error: { code: 'QuotaExceeded', message: 'Out of call volume quota.' } },
    'quota',
  ],
  ['DeepSeek: content', 400, openai('Content Exists Risk'), 'filtered'],
  ['Volcengine: content', 400, openai('the input text may contain sensitive information'), 'filtered'],
  [
    'Volcengine: a context',
    400,
    openai('Total tokens of image and text exceed max message tokens.'),
    'tooLong',
  ],
  [
    'LM Studio: a context',
    400,
    { error: 'The number of tokens to keep from the initial prompt is greater than the context length.' },
    'tooLong',
  ],
  ['older llama.cpp: a context', 500, openai('Input prompt is too big compared to KV size.'), 'tooLong'],
  ['Bedrock: a context', 400, { message: 'Number of input tokens exceeds maximum length.' }, 'tooLong'],
  [
    'watsonx: a context',
    400,
    { errors: [{ message: 'the number of input tokens 5000 cannot exceed the total tokens limit 4096' }] },
    'tooLong',
  ],
  [
    'watsonx: a quota',
    403,
    { errors: [{ code: 'token_quota_reached', message: 'The usage token quota has been reached' }] },
    'quota',
  ],
  [
    'Novita: a balance',
    403,
    { code: 403, reason: 'NOT_ENOUGH_BALANCE', message: 'not enough balance' },
    'operator',
  ],
  ['DeepInfra: a balance', 403, { detail: 'Please top up your account' }, 'operator'],
  ['LiteLLM: a budget', 400, openai('Budget has been exceeded!', { type: 'budget_exceeded' }), 'operator'],
  [
    'Mistral: a field, inside the message',
    422,
    { message: { detail: [{ type: 'extra_forbidden', msg: 'Extra inputs are not permitted' }] } },
    'malformed',
  ],
  [
    'MiniMax: parameters',
    200,
    { base_resp: { status_code: 2013, status_msg: 'invalid params' } },
    'malformed',
  ],
  [
    'Baidu: a limit of the day',
    200,
    { error_code: 17, error_msg: 'Open api daily request limit reached' },
    'quota',
  ],
  [
    'OpenAI: a wrong key',
    401,
    openai('Incorrect API key provided: sk-x', { code: 'invalid_api_key' }),
    'operator',
  ],
  [
    'Gemini: a key that is not valid',
    400,
    google({ code: 400, message: 'API key not valid. Please pass one.' }),
    'operator',
  ],
  [
    'Gemini: a reason in the details',
    400,
    google({ code: 400, message: 'x', details: [{ reason: 'API_KEY_INVALID' }] }),
    'operator',
  ],
  [
    'Gemini: an expired key',
    400,
    google({ code: 400, message: 'API key expired. Please renew the API key.' }),
    'operator',
  ],
  [
    'Gemini: a country',
    400,
    google({ status: 'FAILED_PRECONDITION', message: 'User location is not supported for the API use.' }),
    'operator',
  ],
  [
    'xAI: a wrong key',
    400,
    { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***Zz.' },
    'operator',
  ],
  [
    'Groq: a restricted organisation',
    400,
    openai('Organization has been restricted.', { code: 'organization_restricted' }),
    'operator',
  ],
  ['Mistral: no key', 401, { message: 'Unauthorized', request_id: 'x' }, 'operator'],
  ['a proxy that forbids', 403, '<html><h1>403 Forbidden</h1></html>', 'operator'],
  [
    'Anthropic: an empty balance',
    400,
    anthropic('invalid_request_error', 'Your credit balance is too low to access the Claude API.'),
    'operator',
  ],
  [
    'OpenAI: the hard limit',
    400,
    openai('Billing hard limit has been reached', { code: 'billing_hard_limit_reached' }),
    'operator',
  ],
  [
    'DeepSeek: no balance',
    402,
    openai('Insufficient Balance', { type: 'unknown_error', code: 'invalid_request_error' }),
    'operator',
  ],
  [
    'xAI: no credits',
    403,
    { code: 'The caller does not have permission', error: "Your team doesn't have any credits yet." },
    'operator',
  ],
  [
    'Alibaba: arrears',
    400,
    openai('Access denied, please make sure your account is in good standing.', { code: 'Arrearage' }),
    'operator',
  ],
  ['Zhipu: arrears with 429', 429, { error: { code: '1113', message: 'x' } }, 'operator'],
  [
    'SiliconFlow: no balance',
    403,
    { code: 30001, message: 'Sorry, your account balance is insufficient', data: null },
    'operator',
  ],
  [
    'MiniMax: no balance in a 200',
    200,
    { choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
    'operator',
  ],
  [
    'OpenAI: a quota',
    429,
    openai('You exceeded your current quota', { type: 'insufficient_quota', code: 'insufficient_quota' }),
    'quota',
  ],
  [
    'Moonshot: a quota',
    429,
    { error: { type: 'exceeded_current_quota_error', message: 'suspended' } },
    'quota',
  ],
  [
    'Gemini: a limit of a minute, called a quota',
    429,
    google({
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      message: 'You exceeded your current quota, please check your plan and billing details.',
    }),
    'rateLimited',
  ],
  ['DeepSeek: an unknown model', 400, openai('Model Not Exist'), 'operator'],
  [
    'Mistral: an unknown model',
    400,
    { object: 'error', message: 'Invalid model: x', type: 'invalid_model', code: '1500' },
    'operator',
  ],
  [
    'Groq: a retired model',
    400,
    openai('The model `x-3.1` has been decommissioned', { code: 'model_decommissioned' }),
    'operator',
  ],
  [
    'OpenAI: a retired model by its words',
    400,
    openai('The model `gpt-3.5-turbo-0301` has been deprecated, learn more here'),
    'operator',
  ],
  [
    'OpenRouter: an unknown model',
    400,
    { error: { message: 'a/b is not a valid model ID', code: 400 } },
    'operator',
  ],
  [
    'Bedrock: an unknown model',
    400,
    { __type: 'ValidationException', message: 'The provided model identifier is invalid.' },
    'operator',
  ],
  [
    'vLLM: an unknown model',
    404,
    { object: 'error', message: 'The model `x` does not exist.', type: 'NotFoundError', code: 404 },
    'operator',
  ],
  ['a wrong path', 404, '404 page not found', 'operator'],
  ['OpenAI: too long', 400, openai('too long', { code: 'context_length_exceeded' }), 'tooLong'],
  [
    'vLLM: too long',
    400,
    vllm("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."),
    'tooLong',
  ],
  [
    'llama.cpp: too long',
    400,
    {
      error: {
        code: 400,
        message: 'the request exceeds the available context size',
        type: 'exceed_context_size_error',
      },
    },
    'tooLong',
  ],
  [
    'llama.cpp: too long, with 500',
    500,
    {
      error: {
        code: 500,
        message: 'the request exceeds the available context size, try increasing it',
        type: 'server_error',
      },
    },
    'tooLong',
  ],
  [
    'Anthropic: too long',
    400,
    anthropic('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    'tooLong',
  ],
  [
    'Anthropic: too long with its answer',
    400,
    anthropic(
      'invalid_request_error',
      'input length and `max_tokens` exceed context limit: 199000 + 21333 > 200000',
    ),
    'tooLong',
  ],
  [
    'Gemini: too long',
    400,
    google({
      code: 400,
      status: 'INVALID_ARGUMENT',
      message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).',
    }),
    'tooLong',
  ],
  ['Bedrock: too long', 400, { message: 'Input is too long for requested model.' }, 'tooLong'],
  [
    'Mistral: too long',
    400,
    {
      object: 'error',
      message:
        'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      code: '3051',
    },
    'tooLong',
  ],
  [
    'TGI: too long',
    422,
    {
      error: 'Input validation error: `inputs` must have less than 4096 tokens. Given: 5000',
      error_type: 'validation',
    },
    'tooLong',
  ],
  [
    'LM Studio: too long',
    400,
    { error: 'The model is loaded with context length of only 4096 tokens, which is not enough' },
    'tooLong',
  ],
  [
    'Groq: more than the tokens of a minute',
    413,
    openai('Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7500', {
      type: 'tokens',
      code: 'rate_limit_exceeded',
    }),
    'tooLong',
  ],
  [
    'Bedrock: too many tokens for now',
    429,
    { __type: 'ThrottlingException', message: 'Too many tokens, please wait before trying again.' },
    'rateLimited',
  ],
  ['a proxy with a limit of its own', 413, '<html>413 Request Entity Too Large</html>', 'tooLarge'],
  [
    'Azure: a filter',
    400,
    { error: { message: 'x', code: 'content_filter', innererror: { code: 'ResponsibleAIPolicyViolation' } } },
    'filtered',
  ],
  [
    'Anthropic: a filter',
    400,
    anthropic('invalid_request_error', 'Output blocked by content filtering policy'),
    'filtered',
  ],
  [
    'OpenRouter: a moderated request',
    403,
    { error: { code: 403, message: 'Your input was flagged', metadata: { reasons: ['x'] } } },
    'filtered',
  ],
  [
    'Alibaba: a filter',
    400,
    openai('Input data may contain inappropriate content.', { code: 'data_inspection_failed' }),
    'filtered',
  ],
  [
    'OpenAI: a parameter',
    400,
    openai("Unsupported parameter: 'max_tokens' is not supported with this model.", {
      code: 'unsupported_parameter',
    }),
    'malformed',
  ],
  ['OpenAI: an unknown argument', 400, openai('Unrecognized request argument supplied: top_k'), 'malformed'],
  ['Ollama: no tools', 400, openai('library/x does not support tools', { type: 'api_error' }), 'malformed'],
  [
    'vLLM: no tools',
    400,
    vllm('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    'malformed',
  ],
  [
    'Mistral: an extra field',
    422,
    { detail: [{ type: 'extra_forbidden', loc: ['body', 'top_k'], msg: 'Extra inputs are not permitted' }] },
    'malformed',
  ],
  [
    'vLLM: roles of a template',
    400,
    vllm('Conversation roles must alternate user/assistant/user/assistant/...'),
    'malformed',
  ],
  [
    'OpenRouter: no host with tools',
    404,
    { error: { message: 'No endpoints found that support tool use.', code: 404 } },
    'malformed',
  ],
  ['OpenAI: malformed messages', 400, openai("Invalid type for 'messages[0].content'"), 'malformed'],
  ['a 422 without a word', 422, undefined, 'malformed'],
  [
    'Groq: a tool call of the model that does not parse',
    400,
    openai('Failed to call a function.', { code: 'tool_use_failed' }),
    'failed',
  ],
  ['Anthropic: overloaded', 529, anthropic('overloaded_error', 'Overloaded'), 'overloaded'],
  ['Moonshot: overloaded', 429, { error: { type: 'engine_overloaded_error', message: 'x' } }, 'overloaded'],
  [
    'llama.cpp: loading',
    503,
    { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
    'overloaded',
  ],
  [
    'Groq: no room for flex',
    498,
    openai('Flex tier capacity exceeded', { code: 'capacity_exceeded' }),
    'overloaded',
  ],
  ['OpenAI: a rate limit', 429, openai('Rate limit reached', { code: 'rate_limit_exceeded' }), 'rateLimited'],
  ['a rate limit in a 200', 200, { error: { code: 429, message: 'x' } }, 'rateLimited'],
  ['a fault in a 200', 200, { error: { code: 502, message: 'x' } }, 'failed'],
  ['a timeout in a 200', 200, { error: { type: 'GatewayTimeout', code: 504 } }, 'timeout'],
  ['a page in a 200', 200, '<html><title>Checking your browser</title></html>', 'invalidReply'],
  ['a word that nobody knows, in a 200', 200, { error: { code: 'server_error' } }, 'invalidReply'],
  ['a number beyond all statuses, in a 200', 200, { error: { code: 600 } }, 'invalidReply'],
  ...(
    [
      [204, 'invalidReply'],
      [307, 'invalidReply'],
      [400, 'malformed'],
      [401, 'operator'],
      [402, 'operator'],
      [404, 'operator'],
      [408, 'timeout'],
      [422, 'malformed'],
      [429, 'rateLimited'],
      [499, 'operator'],
      [500, 'failed'],
      [503, 'overloaded'],
      [504, 'timeout'],
      [524, 'timeout'],
    ] as const
  ).map(([code, kind]) => [`a bare ${code}`, code, '', kind] as const),
  [
    'DeepSeek: a role that it does not know',
    400,
    openai(
      'messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`',
    ),
    'malformed',
  ],
  ['a schema of Rust', 400, openai('data did not match any variant of untagged enum Messages'), 'malformed'],
  [
    'Mistral: ids of tools',
    400,
    vllm('Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.'),
    'malformed',
  ],
  [
    'xAI: content, in words that name a key',
    403,
    {
      code: 'The caller does not have permission to execute the specified operation',
      error:
        'Content violates usage guidelines. Team: 1, API key ID: 2, Failed check: SAFETY_CHECK_TYPE_CSAM',
    },
    'filtered',
  ],
]

describeCases(
  'is understood: %s',
  Object.fromEntries(
    ERRORS.map(([name, code, body, meaning]) => [name, does(status(code, body ?? ''), MEANINGS[meaning])]),
  ),
)
