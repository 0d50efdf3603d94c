/**
 * CONTRACT 6: how providers fail, each behaviour whole and streamed, alone and with a backup; and what their errors mean,
 * after public reports and documentation.
 */
import { describeCases, does, type Outcome, type ProviderCase } from '../../support/chat/provider-case.ts'
import { chunk, completion, json, sse, status, stream } from '../../support/chat/upstream.ts'

/** A failure of the provider, or of our account there: the next provider is tried. */
const BROKEN: Outcome = { status: 502, type: 'provider_unavailable', retryAfter: '5', backup: true }
const refusal = (type: string): Outcome => ({ status: 400, type, retryAfter: null, backup: true })
const TOO_LONG = refusal('context_length_exceeded')
const limited = (seconds: number): Outcome => ({
  status: 429,
  type: 'rate_limit_exceeded',
  retryAfter: String(seconds),
  backup: true,
})

const answers = (code: number, body: unknown, outcome: Outcome, headers = {}): ProviderCase =>
  does(status(code, body, headers), outcome)
const secretly = (message: string, more = {}) => ({ error: { message: `${message} (secret)`, ...more } })

const STATUSES: Readonly<Record<string, ProviderCase>> = {
  'a 401 with its key': answers(401, secretly('Incorrect API key provided'), BROKEN),
  'a 429 with seconds': answers(429, secretly('slow'), limited(7), { 'retry-after': '7' }),
  'a 429 with a fraction of seconds': answers(429, secretly('slow'), limited(8), { 'retry-after': '7.66' }),
  'a 429 with a day, of which an hour is passed on': answers(429, secretly('slow'), limited(3600), {
    'retry-after': '86400',
  }),
  'a 429 with milliseconds': answers(429, secretly('slow'), limited(8), { 'retry-after-ms': '7300' }),
  'a 429 with a date': answers(
    429,
    secretly('slow'),
    { status: 429, type: 'rate_limit_exceeded', backup: true },
    { 'retry-after': new Date(Date.now() + 20_000).toUTCString() },
  ),
  'a 429 of Gemini': answers(
    429,
    [{ error: { code: 429, status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '37s' }] } }],
    limited(37),
  ),
  'a 429 with words': answers(429, secretly('Please try again in 20s.'), limited(20)),
  'a 429 with words of Azure': answers(429, secretly('Please retry after 20 seconds.'), limited(20)),
  'a 429 with a number in the body': answers(429, { error: { retry_after: 3.2 } }, limited(4)),
  'a 429 with milliseconds in the details': answers(
    429,
    [{ error: { details: [{ retryDelay: '450ms' }] } }],
    limited(1),
  ),
  'a 429 with minutes in words': answers(429, secretly('try again in 2 minutes'), limited(120)),
  'a 429 that says later': answers(429, secretly('Please try again later.'), limited(5)),
  'a redirect': answers(307, '', BROKEN, { location: '/secret' }),
}

/** These data in a 200: as the whole reply, and as a whole stream. */
const inside = (body: unknown, outcome: Outcome): ProviderCase => ({
  whole: json(body),
  streamed: stream(sse([body])),
  outcome,
})

const IN_200: Readonly<Record<string, ProviderCase>> = {
  'an error object in a 200': inside(secretly('boom', { code: 500 }), BROKEN),
  'an error text in a 200': inside({ error: 'model not loaded' }, BROKEN),
  'an error of older vLLM in a 200': inside(
    { object: 'error', message: 'secret', type: 'BadRequestError', code: 400 },
    refusal('invalid_request'),
  ),
  'an event of Anthropic in a 200': inside(
    { type: 'error', error: { type: 'overloaded_error', message: 'secret' } },
    BROKEN,
  ),
  'a context exceeded in a 200': inside({ message: 'context size exceeded', code: 400 }, TOO_LONG),
  'an empty balance of MiniMax in a 200': inside(
    { choices: null, base_resp: { status_code: 1008, status_msg: 'secret' } },
    BROKEN,
  ),
  'no success in a 200': inside({ success: false, msg: 'secret' }, BROKEN),
  'an error inside a choice': {
    whole: json(completion('', { choices: [{ message: { content: '' }, error: { message: 'secret' } }] })),
    streamed: stream(sse([{ choices: [{ index: 0, delta: {}, error: { message: 'secret' } }] }])),
    outcome: BROKEN,
  },
  'the finish error': {
    whole: json(completion('', { choices: [{ message: { content: '' }, finish_reason: 'error' }] })),
    streamed: stream(sse([chunk({ content: '' }, 'error', { error: { message: 'secret' } })])),
    outcome: BROKEN,
  },
  'no choices': inside({ id: 'x', choices: [] }, BROKEN),
  'choices of another operation': {
    whole: json({ choices: [{ index: 0, text: 'secret', finish_reason: 'stop' }] }),
    streamed: stream(sse([{ choices: [{ index: 0, text: 'secret', finish_reason: 'stop' }] }])),
    outcome: BROKEN,
  },
}

/** A stream that fails after these words: nothing was sent, so another provider may still serve. */
const after = (text: string, outcome: Outcome): ProviderCase => ({
  whole: json({ error: { message: 'secret' } }),
  streamed: stream(sse([chunk({ content: 'Hel' })], false) + text),
  outcome: BROKEN,
  streamOutcome: outcome,
})

const IN_STREAM: Readonly<Record<string, ProviderCase>> = {
  'an error after the first words': after('data: {"error":{"message":"TimeoutError","code":504}}\n\n', {
    status: 408,
    type: 'timeout',
    backup: true,
  }),
  'an event named error that is a context': after(
    'event: error\ndata: {"message":"context size exceeded","code":400}\n\ndata: [DONE]\n\n',
    TOO_LONG,
  ),
  'a field named error of llama.cpp': after('error: {"code":500,"message":"secret"}\n\n', BROKEN),
}

const words = sse([chunk({ content: 'Hel' })], false)
const BROKEN_OFF: Readonly<Record<string, ProviderCase>> = {
  'a connection cut on the way': {
    whole: (response) => {
      response.writeHead(200, { 'content-length': 500 }).write('{"id":')
      setTimeout(() => response.destroy(), 20)
    },
    streamed: stream(words, { ending: 'cut' }),
    outcome: BROKEN,
    streamOutcome: { cut: 'Hel' },
  },
  'an end without a finish': {
    whole: json({ id: 'x', choices: null }),
    streamed: stream(words),
    outcome: BROKEN,
    streamOutcome: { cut: 'Hel' },
  },
}

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
  tooLong: TOO_LONG,
  tooLarge: refusal('payload_too_large'),
  filtered: refusal('content_policy_violation'),
} as const satisfies Readonly<Record<string, Outcome>>

function meaningOf(name: string): Outcome {
  const [, outcome] = Object.entries(MEANINGS).find(([key]) => key === name) ?? []
  if (outcome === undefined) throw new TypeError(`There is no meaning ${name}`)
  return outcome
}

/** Meaning, status, what it is, and the body. */
const REPORTS = `
operator | 400 | Gemini: no billing | [{"error":{"status":"FAILED_PRECONDITION","message":"Please enable billing on your project."}}]
tooLong | 400 | xAI: a prompt too long | {"error":"This model's maximum prompt length is 131072 but the request contains 200000 tokens."}
quota | 400 | Anthropic: a limit of use | {"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits."}}
malformed | 400 | Anthropic: too many tokens asked for | {"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens"}}
malformed | 400 | OpenAI: images | {"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error","param":null,"code":null}}
quota | 403 | Azure: a volume used up | {"error":{"code":"QuotaExceeded","message":"Out of call volume quota."}}
filtered | 400 | DeepSeek: content | {"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":null}}
filtered | 400 | Volcengine: content | {"error":{"message":"the input text may contain sensitive information","type":"invalid_request_error","param":null,"code":null}}
tooLong | 400 | Volcengine: a context | {"error":{"message":"Total tokens of image and text exceed max message tokens.","type":"invalid_request_error","param":null,"code":null}}
tooLong | 400 | LM Studio: a context | {"error":"The number of tokens to keep from the initial prompt is greater than the context length."}
tooLong | 500 | older llama.cpp: a context | {"error":{"message":"Input prompt is too big compared to KV size.","type":"invalid_request_error","param":null,"code":null}}
tooLong | 400 | Bedrock: a context | {"message":"Number of input tokens exceeds maximum length."}
tooLong | 400 | watsonx: a context | {"errors":[{"message":"the number of input tokens 5000 cannot exceed the total tokens limit 4096"}]}
quota | 403 | watsonx: a quota | {"errors":[{"code":"token_quota_reached","message":"The usage token quota has been reached"}]}
operator | 403 | Novita: a balance | {"code":403,"reason":"NOT_ENOUGH_BALANCE","message":"not enough balance"}
operator | 403 | DeepInfra: a balance | {"detail":"Please top up your account"}
operator | 400 | LiteLLM: a budget | {"error":{"message":"Budget has been exceeded!","type":"budget_exceeded","param":null,"code":null}}
malformed | 422 | Mistral: a field, inside the message | {"message":{"detail":[{"type":"extra_forbidden","msg":"Extra inputs are not permitted"}]}}
malformed | 200 | MiniMax: parameters | {"base_resp":{"status_code":2013,"status_msg":"invalid params"}}
quota | 200 | Baidu: a limit of the day | {"error_code":17,"error_msg":"Open api daily request limit reached"}
operator | 401 | OpenAI: a wrong key | {"error":{"message":"Incorrect API key provided: sk-x","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}
operator | 400 | Gemini: a key that is not valid | [{"error":{"code":400,"message":"API key not valid. Please pass one."}}]
operator | 400 | Gemini: a reason in the details | [{"error":{"code":400,"message":"x","details":[{"reason":"API_KEY_INVALID"}]}}]
operator | 400 | Gemini: an expired key | [{"error":{"code":400,"message":"API key expired. Please renew the API key."}}]
operator | 400 | Gemini: a country | [{"error":{"status":"FAILED_PRECONDITION","message":"User location is not supported for the API use."}}]
operator | 400 | xAI: a wrong key | {"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***Zz."}
operator | 400 | Groq: a restricted organisation | {"error":{"message":"Organization has been restricted.","type":"invalid_request_error","param":null,"code":"organization_restricted"}}
operator | 401 | Mistral: no key | {"message":"Unauthorized","request_id":"x"}
operator | 403 | a proxy that forbids | "<html><h1>403 Forbidden</h1></html>"
operator | 400 | Anthropic: an empty balance | {"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Claude API."}}
operator | 400 | OpenAI: the hard limit | {"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}
operator | 402 | DeepSeek: no balance | {"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}
operator | 403 | xAI: no credits | {"code":"The caller does not have permission","error":"Your team doesn't have any credits yet."}
operator | 400 | Alibaba: arrears | {"error":{"message":"Access denied, please make sure your account is in good standing.","type":"invalid_request_error","param":null,"code":"Arrearage"}}
operator | 429 | Zhipu: arrears with 429 | {"error":{"code":"1113","message":"x"}}
operator | 403 | SiliconFlow: no balance | {"code":30001,"message":"Sorry, your account balance is insufficient","data":null}
operator | 200 | MiniMax: no balance in a 200 | {"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}
quota | 429 | OpenAI: a quota | {"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}
quota | 429 | Moonshot: a quota | {"error":{"type":"exceeded_current_quota_error","message":"suspended"}}
rateLimited | 429 | Gemini: a limit of a minute, called a quota | [{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details."}}]
operator | 400 | DeepSeek: an unknown model | {"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":null}}
operator | 400 | Mistral: an unknown model | {"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}
operator | 400 | Groq: a retired model | {"error":{"message":"The model \`x-3.1\` has been decommissioned","type":"invalid_request_error","param":null,"code":"model_decommissioned"}}
operator | 400 | OpenAI: a retired model by its words | {"error":{"message":"The model \`gpt-3.5-turbo-0301\` has been deprecated, learn more here","type":"invalid_request_error","param":null,"code":null}}
operator | 400 | OpenRouter: an unknown model | {"error":{"message":"a/b is not a valid model ID","code":400}}
operator | 400 | Bedrock: an unknown model | {"__type":"ValidationException","message":"The provided model identifier is invalid."}
operator | 404 | vLLM: an unknown model | {"object":"error","message":"The model \`x\` does not exist.","type":"NotFoundError","code":404}
operator | 404 | a wrong path | "404 page not found"
tooLong | 400 | OpenAI: too long | {"error":{"message":"too long","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}
tooLong | 400 | vLLM: too long | {"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.","type":"BadRequestError","param":null,"code":400}
tooLong | 400 | llama.cpp: too long | {"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}
tooLong | 500 | llama.cpp: too long, with 500 | {"error":{"code":500,"message":"the request exceeds the available context size, try increasing it","type":"server_error"}}
tooLong | 400 | Anthropic: too long | {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}
tooLong | 400 | Anthropic: too long with its answer | {"type":"error","error":{"type":"invalid_request_error","message":"input length and \`max_tokens\` exceed context limit: 199000 + 21333 > 200000"}}
tooLong | 400 | Gemini: too long | [{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048575)."}}]
tooLong | 400 | Bedrock: too long | {"message":"Input is too long for requested model."}
tooLong | 400 | Mistral: too long | {"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","code":"3051"}
tooLong | 422 | TGI: too long | {"error":"Input validation error: \`inputs\` must have less than 4096 tokens. Given: 5000","error_type":"validation"}
tooLong | 400 | LM Studio: too long | {"error":"The model is loaded with context length of only 4096 tokens, which is not enough"}
tooLong | 413 | Groq: more than the tokens of a minute | {"error":{"message":"Request too large for model \`x\` on tokens per minute (TPM): Limit 6000, Requested 7500","type":"tokens","param":null,"code":"rate_limit_exceeded"}}
rateLimited | 429 | Bedrock: too many tokens for now | {"__type":"ThrottlingException","message":"Too many tokens, please wait before trying again."}
tooLarge | 413 | a proxy with a limit of its own | "<html>413 Request Entity Too Large</html>"
filtered | 400 | Azure: a filter | {"error":{"message":"x","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}
filtered | 400 | Anthropic: a filter | {"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}
filtered | 403 | OpenRouter: a moderated request | {"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["x"]}}}
filtered | 400 | Alibaba: a filter | {"error":{"message":"Input data may contain inappropriate content.","type":"invalid_request_error","param":null,"code":"data_inspection_failed"}}
malformed | 400 | OpenAI: a parameter | {"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model.","type":"invalid_request_error","param":null,"code":"unsupported_parameter"}}
malformed | 400 | OpenAI: an unknown argument | {"error":{"message":"Unrecognized request argument supplied: top_k","type":"invalid_request_error","param":null,"code":null}}
malformed | 400 | Ollama: no tools | {"error":{"message":"library/x does not support tools","type":"api_error","param":null,"code":null}}
malformed | 400 | vLLM: no tools | {"object":"error","message":"\\"auto\\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}
malformed | 422 | Mistral: an extra field | {"detail":[{"type":"extra_forbidden","loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]}
malformed | 400 | vLLM: roles of a template | {"object":"error","message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","param":null,"code":400}
malformed | 404 | OpenRouter: no host with tools | {"error":{"message":"No endpoints found that support tool use.","code":404}}
malformed | 400 | OpenAI: malformed messages | {"error":{"message":"Invalid type for 'messages[0].content'","type":"invalid_request_error","param":null,"code":null}}
malformed | 422 | a 422 without a word | ""
failed | 400 | Groq: a tool call of the model that does not parse | {"error":{"message":"Failed to call a function.","type":"invalid_request_error","param":null,"code":"tool_use_failed"}}
overloaded | 529 | Anthropic: overloaded | {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
overloaded | 429 | Moonshot: overloaded | {"error":{"type":"engine_overloaded_error","message":"x"}}
overloaded | 503 | llama.cpp: loading | {"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}
overloaded | 498 | Groq: no room for flex | {"error":{"message":"Flex tier capacity exceeded","type":"invalid_request_error","param":null,"code":"capacity_exceeded"}}
rateLimited | 429 | OpenAI: a rate limit | {"error":{"message":"Rate limit reached","type":"invalid_request_error","param":null,"code":"rate_limit_exceeded"}}
rateLimited | 200 | a rate limit in a 200 | {"error":{"code":429,"message":"x"}}
failed | 200 | a fault in a 200 | {"error":{"code":502,"message":"x"}}
timeout | 200 | a timeout in a 200 | {"error":{"type":"GatewayTimeout","code":504}}
invalidReply | 200 | a page in a 200 | "<html><title>Checking your browser</title></html>"
invalidReply | 200 | a word that nobody knows, in a 200 | {"error":{"code":"server_error"}}
invalidReply | 200 | a number beyond all statuses, in a 200 | {"error":{"code":600}}
invalidReply | 204 | a bare 204 | ""
invalidReply | 307 | a bare 307 | ""
malformed | 400 | a bare 400 | ""
operator | 401 | a bare 401 | ""
operator | 402 | a bare 402 | ""
operator | 404 | a bare 404 | ""
timeout | 408 | a bare 408 | ""
malformed | 422 | a bare 422 | ""
rateLimited | 429 | a bare 429 | ""
operator | 499 | a bare 499 | ""
failed | 500 | a bare 500 | ""
overloaded | 503 | a bare 503 | ""
timeout | 504 | a bare 504 | ""
timeout | 524 | a bare 524 | ""
malformed | 400 | DeepSeek: a role that it does not know | {"error":{"message":"messages[0].role: unknown variant \`developer\`, expected one of \`system\`, \`user\`, \`assistant\`, \`tool\`","type":"invalid_request_error","param":null,"code":null}}
malformed | 400 | a schema of Rust | {"error":{"message":"data did not match any variant of untagged enum Messages","type":"invalid_request_error","param":null,"code":null}}
malformed | 400 | Mistral: ids of tools | {"object":"error","message":"Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.","type":"BadRequestError","param":null,"code":400}
filtered | 403 | xAI: content, in words that name a key | {"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Team: 1, API key ID: 2, Failed check: SAFETY_CHECK_TYPE_CSAM"}
`

const MEANT = REPORTS.trim()
  .split('\n')
  .map((line) => {
    const [meaning = '', code = '', name = '', ...body] = line.split(' | ')
    return [name, does(status(Number(code), JSON.parse(body.join(' | '))), meaningOf(meaning))] as const
  })

describeCases('fails with %s', {
  ...STATUSES,
  ...IN_200,
  ...IN_STREAM,
  ...BROKEN_OFF,
  ...Object.fromEntries(MEANT),
})
