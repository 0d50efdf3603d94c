/**
 * CONTRACT 6: how providers fail, each behaviour whole and streamed, alone and with a backup; and what their errors mean,
 * after public reports and documentation.
 */
import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import {
  describeCases,
  does,
  goesOn,
  ofStream,
  rowsOf,
  UNHURRIED,
  type Cases,
  type Outcome,
} from '../../support/chat/provider-case.ts'
import {
  answers,
  chunk,
  completion,
  cutAfter,
  ends,
  endsWith,
  events,
  hangUp,
  reset,
  sse,
  stall,
  status,
  stream,
  writes,
  type Behaviour,
} from '../../support/chat/upstream.ts'

/** A failure of the provider, or of our account there. */
const broken = (message: string) =>
  ({ status: 502, type: 'provider_unavailable', retryAfter: '5', message }) as const
const refusal = (type: string, message: string) =>
  ({ status: 400, type, retryAfter: null, message: `refused the request: ${message}` }) as const
const limited = (retryAfter: unknown = '5') => {
  return { status: 429, type: 'rate_limit_exceeded', retryAfter, message: 'takes no more requests for now' }
}

const MEANINGS = {
  connection: broken('could not be reached'),
  operator: broken('did not accept the request of this service'),
  // Waiting does not help.
  quota: { ...broken('did not accept the request of this service'), retryAfter: null },
  overloaded: { ...broken('is overloaded'), attempt: 'provider_overloaded' },
  failed: broken('failed'),
  invalidReply: broken('sent a reply that cannot be used'),
  cut: broken('ended its reply before it was whole'),
  rateLimited: limited(),
  timeout: { status: 408, type: 'timeout', retryAfter: null, message: 'did not answer in time' },
  malformed: refusal('invalid_request', 'it does not accept or support a part of it'),
  // Agents look for these words, and shorten their context.
  tooLong: refusal(
    'context_length_exceeded',
    'the prompt is too long, it exceeds the maximum context length (context_length_exceeded)',
  ),
  tooLarge: refusal('payload_too_large', 'its body is too large'),
  filtered: refusal('content_policy_violation', 'its content is not allowed'),
} as const satisfies Readonly<Record<string, Outcome>>

/** Meaning, statuses, what it is, and the body; with 200 as a whole reply, and as the only event of a stream. */
const REPORTS = `
operator | 400 | Gemini: no billing | [{"error":{"status":"FAILED_PRECONDITION","message":"Please enable billing on your project."}}]
tooLong | 400 | xAI: a prompt too long | {"error":"This model's maximum prompt length is 131072 but the request contains 200000 tokens."}
quota | 400 | Anthropic: a limit of use | {"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits."}}
malformed | 400 | Anthropic: too many tokens asked for | {"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens"}}
malformed | 400 | OpenAI: images | {"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error","param":null,"code":null}}
quota | 403 | Azure: a volume used up | {"error":{"code":"QuotaExceeded","message":"Out of call volume quota."}}
tooLong | 400 | Zhipu: a context, in English | {"error":{"code":"1210","message":"tokens in request more than max tokens allowed"}}
tooLong | 400 | tabbyAPI: a context | {"detail":"Prompt length 9000 is greater than max_seq_len 8192"}
tooLong | 400 | DS4: a context | {"error":{"message":"Prompt has 256468 tokens, but the configured context size is 256000 tokens"}}
tooLong | 400 | Snowflake: a context | {"message":"max tokens of 131072 exceeded","error_code":"390142"}
malformed | 400 | Bedrock: too many tokens asked for | {"message":"The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096."}
malformed | 400 | a name of a tool that is too long | {"error":{"message":"tools[0].function.name exceeds maximum length of 64"}}
malformed | 400 | OpenAI: a list of calls that is too long | {"error":{"message":"Invalid 'messages[21].tool_calls': array too long. Expected an array with maximum length 128, but got an array with length 131 instead.","code":"invalid_request_body"}}
malformed | 400 | an image that is too large | {"error":{"message":"The input image exceeds the maximum size of 20 MB"}}
malformed | 400 | vLLM: tokens of the output | {"error":{"message":"min_tokens must be less than or equal to max_tokens=100, got 200."}}
malformed | 400 | a model without streams | {"error":{"message":"Streaming for this model is not supported, send the new content as a whole"}}
rateLimited | 429 | a limit of tokens a minute | {"error":{"message":"Your account has exceeded the max tokens per minute (TPM) limit"}}
tooLong | 400 | GitHub Copilot: the code of a context | {"error":{"message":"x","code":"model_max_prompt_tokens_exceeded"}}
tooLong | 400 | vLLM: a context with its answer | {"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 131072 tokens and your request has 110000 input tokens (32000 > 131072 - 110000)."}}
timeout | 500 | gRPC and Go: a time, called context | {"error":{"message":"rpc error: code = DeadlineExceeded desc = context deadline exceeded"}}
rateLimited | 200 | Bedrock: too many tokens for now, in a stream | {"error":{"message":"An error occurred (throttlingException) when calling the ConverseStream operation: Too many tokens, please wait before trying again."}}
filtered | 451 | StepFun: content | {"error":{"message":"The content you provided or machine outputted is blocked.","type":"censorship_blocked"}}
filtered | 446 | Portkey: a guardrail | {"error":{"message":"The guardrail checks defined in the config failed.","type":"hooks_failed","param":null,"code":null}}
filtered | 424 | Cloudflare: a guardrail | {"success":false,"error":[{"code":2016,"message":"Prompt blocked due to security configurations"}]}
filtered | 422 | MiniMax: content, in the form of OpenAI | {"type":"error","error":{"type":"new_sensitive","message":"output new_sensitive (1027)","http_code":"422"}}
malformed | 404 | OpenRouter: no host with the parameters | {"error":{"message":"No endpoints found that can handle the requested parameters.","code":404}}
operator | 404 | OpenAI: a model of its other API | {"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","type":"invalid_request_error","param":"model","code":null}}
operator | 400 | DeepSeek: another unknown model | {"error":{"message":"The supported API model names are deepseek-v4-pro or deepseek-v4-flash, but you passed x.","type":"invalid_request_error","param":null,"code":null}}
operator | 400 | ChatGPT: a model without access | {"detail":"The 'gpt-5.4-mini' model is not supported when using Codex with a ChatGPT account."}
operator | 400 | nginx: an address with http instead of https | "<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>"
operator | 400 | Bedrock: a model without access | {"message":"You don't have access to the model with the specified model ID."}
failed | 500 | a fault of Python, in words that sound like a request | {"error":{"message":"unsupported operand type(s) for +: 'NoneType' and 'int'","code":500}}
failed | 400 | vLLM: no memory | {"object":"error","message":"CUDA out of memory. Tried to allocate 2.00 GiB","type":"BadRequestError","code":400}
filtered | 400 | DeepSeek: content | {"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":null}}
filtered | 400 | Volcengine: content | {"error":{"message":"the input text may contain sensitive information","type":"invalid_request_error","param":null,"code":null}}
tooLong | 400 | Volcengine: a context | {"error":{"message":"Total tokens of image and text exceed max message tokens.","type":"invalid_request_error","param":null,"code":null}}
tooLong | 400 | Vertex: a context | [{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Unable to submit request because the input token count is 1048600 but model only supports up to 1048576."}}]
tooLong | 400 | LM Studio: a context that overflows | {"error":"Reached context length of 4096 tokens with this model, but this model does not currently support mid-generation context overflow."}
tooLong | 400 | OpenAI: a content too long | {"error":{"message":"Invalid 'messages[0].content[0].text': string too long. Expected a string with maximum length 10485760.","type":"invalid_request_error","param":"messages[0].content[0].text","code":"string_above_max_length"}}
malformed | 400 | OpenAI: an id of a tool call too long | {"error":{"message":"Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40.","type":"invalid_request_error","param":"messages[2].tool_calls[0].id","code":"string_above_max_length"}}
tooLong | 422 | TGI: a context with its answer | {"error":"Input validation error: \`inputs\` tokens + \`max_new_tokens\` must be <= 4096. Given: 5000 \`inputs\` tokens and 100 \`max_new_tokens\`","error_type":"validation"}
tooLong | 500 | older llama.cpp: a context | {"error":{"message":"Input prompt is too big compared to KV size.","type":"invalid_request_error","param":null,"code":null}}
quota | 403 | watsonx: a quota | {"errors":[{"code":"token_quota_reached","message":"The usage token quota has been reached"}]}
operator | 400 | LiteLLM: a budget | {"error":{"message":"Budget has been exceeded!","type":"budget_exceeded","param":null,"code":null}}
malformed | 422 | Mistral: a field, inside the message | {"message":{"detail":[{"type":"extra_forbidden","msg":"Extra inputs are not permitted"}]}}
malformed | 200 | MiniMax: parameters | {"base_resp":{"status_code":2013,"status_msg":"invalid params"}}
quota | 200 | Baidu: a limit of the day | {"error_code":17,"error_msg":"Open api daily request limit reached"}
operator | 400, 401 | OpenAI: a wrong key | {"error":{"message":"Incorrect API key provided: sk-x","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}
operator | 400 | Gemini: a key that is not valid | [{"error":{"code":400,"message":"API key not valid. Please pass one."}}]
operator | 400 | Gemini: a reason in the details | [{"error":{"code":400,"message":"x","details":[{"reason":"API_KEY_INVALID"}]}}]
operator | 400 | Gemini: an expired key | [{"error":{"code":400,"message":"API key expired. Please renew the API key."}}]
operator | 400 | Gemini: a country | [{"error":{"status":"FAILED_PRECONDITION","message":"User location is not supported for the API use."}}]
operator | 400 | Groq: a restricted organisation | {"error":{"message":"Organization has been restricted.","type":"invalid_request_error","param":null,"code":"organization_restricted"}}
operator | 403 | a proxy that forbids | "<html><h1>403 Forbidden</h1></html>"
operator | 400 | Anthropic: an empty balance | {"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Claude API."}}
operator | 400 | OpenAI: the hard limit | {"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}
operator | 400 | Alibaba: arrears | {"error":{"message":"Access denied, please make sure your account is in good standing.","type":"invalid_request_error","param":null,"code":"Arrearage"}}
operator | 429 | Zhipu: arrears with 429 | {"error":{"code":"1113","message":"x"}}
operator | 429 | Zhipu: a subscription that has ended, with 429 | {"error":{"code":"1309","message":"x"}}
operator | 400 | Bedrock: an account without the operation | {"message":"Operation not allowed"}
operator | 200 | MiniMax: no balance | {"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}
quota | 429 | OpenAI: a quota | {"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}
quota | 429 | Moonshot: a quota | {"error":{"type":"exceeded_current_quota_error","message":"suspended"}}
rateLimited | 429 | Gemini: a limit of a minute, called a quota | [{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details."}}]
operator | 400 | DeepSeek: an unknown model | {"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":null}}
operator | 400 | Mistral: an unknown model | {"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}
operator | 400 | Groq: a retired model | {"error":{"message":"The model \`x-3.1\` has been decommissioned","type":"invalid_request_error","param":null,"code":"model_decommissioned"}}
operator | 400 | OpenAI: a retired model by its words | {"error":{"message":"The model \`gpt-3.5-turbo-0301\` has been deprecated, learn more here","type":"invalid_request_error","param":null,"code":null}}
operator | 400 | OpenRouter: an unknown model | {"error":{"message":"a/b is not a valid model ID","code":400}}
operator | 400 | Bedrock: an unknown model | {"__type":"ValidationException","message":"The provided model identifier is invalid."}
operator | 400 | OpenAI: an organisation without verification | {"error":{"message":"Your organization must be verified to stream this model.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}
operator | 404 | OpenAI: a model for another operation | {"error":{"message":"This is not a chat model and thus not supported in the v1/chat/completions endpoint.","type":"invalid_request_error","param":"model","code":null}}
operator | 400 | Azure: a model for another operation | {"error":{"code":"OperationNotSupported","message":"The chatCompletion operation does not work with the specified model, x."}}
operator | 400 | GitHub: an unavailable model | {"error":{"code":"unavailable_model","message":"Unavailable model: x"}}
operator | 200 | MiniMax: a wrong key | {"base_resp":{"status_code":1004,"status_msg":"login fail"},"choices":null}
tooLong | 400 | OpenAI: too long | {"error":{"message":"too long","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}
tooLong | 400, 500 | llama.cpp: too long | {"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}
tooLong | 400 | Anthropic: too long | {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}
tooLong | 400 | Anthropic: too long with its answer | {"type":"error","error":{"type":"invalid_request_error","message":"input length and \`max_tokens\` exceed context limit: 199000 + 21333 > 200000"}}
tooLong | 400 | Bedrock: too long | {"message":"Input is too long for requested model."}
tooLong | 400 | Mistral: too long | {"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","code":"3051"}
tooLong | 422 | TGI: too long | {"error":"Input validation error: \`inputs\` must have less than 4096 tokens. Given: 5000","error_type":"validation"}
tooLong | 400 | LM Studio: too long | {"error":"The model is loaded with context length of only 4096 tokens, which is not enough"}
tooLong | 413 | Groq: more than the tokens of a minute | {"error":{"message":"Request too large for model \`x\` on tokens per minute (TPM): Limit 6000, Requested 7500","type":"tokens","param":null,"code":"rate_limit_exceeded"}}
rateLimited | 429 | Cerebras: tokens of a minute | {"message":"Tokens per minute limit exceeded - too many tokens processed.","type":"too_many_tokens_error","param":"quota","code":"token_quota_exceeded"}
tooLarge | 413 | a proxy with a limit of its own | "<html>413 Request Entity Too Large</html>"
filtered | 400 | Azure: a filter | {"error":{"message":"x","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}
filtered | 400 | Anthropic: a filter | {"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}
filtered | 200 | MiniMax: content | {"base_resp":{"status_code":1026,"status_msg":"input new_sensitive"},"choices":null}
filtered | 400 | LiteLLM: a filter, in one word | {"error":{"message":"litellm.ContentPolicyViolationError: AzureException","type":null,"param":null,"code":"400"}}
filtered | 400 | Gemini: a blocked prompt | {"error":{"message":"The prompt was blocked due to: PROHIBITED_CONTENT","code":400}}
filtered | 403 | OpenRouter: a moderated request | {"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["x"]}}}
filtered | 400 | Alibaba: a filter | {"error":{"message":"Input data may contain inappropriate content.","type":"invalid_request_error","param":null,"code":"data_inspection_failed"}}
malformed | 400 | OpenAI: a parameter | {"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model.","type":"invalid_request_error","param":null,"code":"unsupported_parameter"}}
malformed | 400 | Ollama: no tools | {"error":{"message":"library/x does not support tools","type":"api_error","param":null,"code":null}}
malformed | 400 | vLLM: no tools | {"object":"error","message":"\\"auto\\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}
malformed | 404 | OpenRouter: no host with tools | {"error":{"message":"No endpoints found that support tool use.","code":404}}
failed | 400 | Groq: an output that does not parse | {"error":{"message":"Parsing failed.","type":"invalid_request_error","param":null,"code":"output_parse_failed"}}
failed | 400 | LM Studio: a model that does not load | {"error":{"message":"Failed to load model \\"x\\". Error: insufficient system resources"}}
failed | 400 | Cloudflare: a provider behind it | {"success":false,"result":[],"messages":[],"error":[{"code":2005,"message":"Failed to get response from provider"}]}
failed | 400 | LM Studio: a crash | {"error":"The model has crashed without additional information. (Exit code: 1844674)"}
failed | 400 | LM Studio: a process that ended | {"error":"Channel Error"}
failed | 400 | NVIDIA: a degraded function | {"status":400,"title":"Bad Request","detail":"Function id 'x': DEGRADED function cannot be invoked"}
failed | 400 | vLLM: a dead engine | {"object":"error","message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"BadRequestError","param":null,"code":400}
timeout | 424 | Bedrock: a model that is slow | {"message":"The model timed out"}
failed | 400 | Groq: a tool call of the model that does not parse | {"error":{"message":"Failed to call a function.","type":"invalid_request_error","param":null,"code":"tool_use_failed"}}
overloaded | 200, 529 | Anthropic: overloaded | {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
overloaded | 429 | Moonshot: overloaded | {"error":{"type":"engine_overloaded_error","message":"x"}}
overloaded | 498 | Groq: no room for flex | {"error":{"message":"Flex tier capacity exceeded","type":"invalid_request_error","param":null,"code":"capacity_exceeded"}}
rateLimited | 200 | a rate limit | {"error":{"code":429,"message":"x"}}
timeout | 200 | a timeout | {"error":{"type":"GatewayTimeout","code":504}}
invalidReply | 200 | a page | "<html><title>Checking your browser</title></html>"
invalidReply | 200 | a word that nobody knows | {"error":{"code":"server_error"}}
invalidReply | 200 | a number beyond all statuses | {"error":{"code":600}}
operator | 401, 402, 404, 499 | no text | ""
timeout | 408, 504, 524 | no text | ""
malformed | 400, 422 | no text | ""
invalidReply | 204 | no text | ""
rateLimited | 429 | no text | ""
failed | 500 | no text | ""
overloaded | 503 | no text | ""
malformed | 400 | DeepSeek: a role that it does not know | {"error":{"message":"messages[0].role: unknown variant \`developer\`, expected one of \`system\`, \`user\`, \`assistant\`, \`tool\`","type":"invalid_request_error","param":null,"code":null}}
malformed | 400 | a schema of Rust | {"error":{"message":"data did not match any variant of untagged enum Messages","type":"invalid_request_error","param":null,"code":null}}
malformed | 400 | Mistral: ids of tools | {"object":"error","message":"Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.","type":"BadRequestError","param":null,"code":400}
filtered | 403 | xAI: content, in words that name a key | {"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Team: 1, API key ID: 2, Failed check: SAFETY_CHECK_TYPE_CSAM"}
failed | 200 | an error object | {"error":{"message":"boom (secret)","code":500}}
operator | 200 | an error text | {"error":"model not loaded"}
malformed | 200 | an error of older vLLM | {"object":"error","message":"secret","type":"BadRequestError","code":400}
tooLong | 200 | a context exceeded | {"message":"context size exceeded","code":400}
invalidReply | 200 | no success | {"success":false,"msg":"secret"}
invalidReply | 200 | no choices | {"id":"x","choices":[]}
invalidReply | 200 | null choices | {"id":"x","choices":null}
invalidReply | 200 | an error inside a choice | {"choices":[{"index":0,"delta":{},"message":{"content":""},"error":{"message":"secret"}}]}
invalidReply | 200 | the finish error | {"choices":[{"index":0,"delta":{"content":""},"message":{"content":""},"finish_reason":"error"}]}
invalidReply | 200 | choices of another operation | {"choices":[{"index":0,"text":"secret","finish_reason":"stop"}]}
`

const isMeaning = (name: string): name is keyof typeof MEANINGS => name in MEANINGS

function reportCases([meaning = '', codes = '', name = '', sent = '']: readonly string[]) {
  if (!isMeaning(meaning)) throw new TypeError(`There is no meaning ${meaning}`)
  const body: unknown = JSON.parse(sent)
  return codes.split(', ').map((code) => {
    const whole = status(Number(code), body)
    const streamed = code === '200' ? endsWith(body) : whole
    return [`${code}, ${name}`, { whole, streamed, outcome: MEANINGS[meaning] }] as const
  })
}

/** The seconds that the client is to wait, how a 429 says so, its headers, and its body. */
const WAITS = `
7 | seconds | {"retry-after":"7"} | {}
7 | seconds with their unit | {"retry-after":"7s"} | {}
8 | a fraction of seconds | {"retry-after":"7.66"} | {}
3600 | a day, of which an hour is passed on | {"retry-after":"86400"} | {}
8 | milliseconds | {"retry-after-ms":"7300"} | {}
37 | the details of Gemini | {} | [{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"37s"}]}}]
1 | milliseconds in the details | {} | [{"error":{"details":[{"retryDelay":"450ms"}]}}]
20 | words | {} | {"error":{"message":"Please try again in 20s. (secret)"}}
20 | words of Azure | {} | {"error":{"message":"Please retry after 20 seconds. (secret)"}}
120 | minutes in words | {} | {"error":{"message":"try again in 2 minutes (secret)"}}
20 | words of Django | {} | {"error":{"message":"Request was throttled. Expected available in 20 seconds. (secret)"}}
90 | words of Gemini | {} | {"error":{"message":"Your quota will reset after 1m30s. (secret)"}}
3600 | the headers of OpenRouter in the body | {} | {"error":{"metadata":{"headers":{"X-RateLimit-Reset":"1999999999000"}}}}
4 | a number in the body | {} | {"error":{"retry_after":3.2}}
5 | no time | {} | {"error":{"message":"Please try again later. (secret)"}}
`

function waitCase([seconds, name = '', headers = '', body = '']: readonly string[]) {
  const behaviour = status(429, JSON.parse(body), JSON.parse(headers))
  return [`a 429 with ${name}`, does(behaviour, limited(seconds))] as const
}

const WORD = sse([chunk({ content: 'Hel' })], false)
const role = chunk({ role: 'assistant', content: '' })
const words = JSON.stringify(completion())

/** Begins a reply of 5000 bytes, and breaks off. */
const halfway = (code: number): Behaviour => {
  return (response) =>
    void response.writeHead(code, { 'content-length': 5000 }).write('{"id":', () => response.destroy())
}
/** Writes these bytes to the connection. */
const bytes = (text: string) => does((response) => void response.socket?.write(text), MEANINGS.connection)

/** The time 3000 seconds from now, in seconds since 1970, and what the client is told. */
const IN_3000_S = String(Math.ceil(Date.now() / 1000) + 3000)
const ABOUT_3000 = limited(expect.stringMatching(/^(?:29|30)\d\d$/))

const BROKEN: Cases = {
  'a connection that is reset': does(reset, MEANINGS.connection),
  'a connection that is closed': does(hangUp, MEANINGS.connection),
  'no HTTP': bytes('no HTTP at all\r\n\r\n'),
  'a head without carriage returns': bytes(`HTTP/1.1 200 OK\nContent-Length: ${words.length}\n\n${words}`),
  'a change of protocols': bytes(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
  ),
  'a reply that breaks off': does(halfway(200), MEANINGS.cut),
  'a redirect': does(status(307, '', { location: '/secret' }), MEANINGS.invalidReply),
  'a refusal that breaks off': does(halfway(400), MEANINGS.malformed),
  'a refusal without end': does(
    (response) => void response.writeHead(400).write('x'.repeat(1_000_000)),
    MEANINGS.malformed,
  ),
  'a 429 whose body stalls': ofStream(
    (response) => void response.writeHead(429, { 'retry-after': '7' }).write('{"error":'),
    limited('7'),
  ),
  'a 429 with the time itself': does(status(429, {}, { 'retry-after': IN_3000_S }), ABOUT_3000),
  'a reply above the size limit': {
    ...does((response) => void response.end(words.padEnd(64 * 2 ** 20 + 1)), MEANINGS.invalidReply),
    streamed: answers(),
    streamOutcome: { content: 'Hello' },
  },
  'an unknown coding': does(
    (response) => void response.writeHead(200, { 'content-encoding': 'zip' }).end(gzipSync(words)),
    MEANINGS.invalidReply,
  ),
}

/** Streams that fail before anything of them was sent. */
const BEFORE_SENT: Cases = {
  'an empty stream': ofStream(stream(''), MEANINGS.invalidReply),
  '[DONE] alone': ofStream(endsWith(), MEANINGS.invalidReply),
  'a role, and a break': ofStream(cutAfter(role), MEANINGS.cut),
  'a role, an empty finish, and a break': ofStream(
    cutAfter(chunk({ role: 'assistant', content: '' }, '')),
    MEANINGS.cut,
  ),
  'a role, and an error': ofStream(
    endsWith(role, { error: { message: 'secret', code: 500 } }),
    MEANINGS.failed,
  ),
  'data that is no JSON': ofStream(stream('data: {"torn\n\n'), MEANINGS.invalidReply),
  'an error in the read of the first word': ofStream(
    stream(`${WORD}data: {"error":{"message":"TimeoutError","code":504}}\n\n`),
    MEANINGS.timeout,
  ),
  'an event named error in the read of the first word': ofStream(
    stream(`${WORD}event: error\ndata: {"message":"context size exceeded","code":400}\n\ndata: [DONE]\n\n`),
    MEANINGS.tooLong,
  ),
  'a field named error in the read of the first word': ofStream(
    stream(`${WORD}error: {"code":500,"message":"secret"}\n\n`),
    MEANINGS.failed,
  ),
}

/** What a stream sends after its first word, and its type; a later [DONE] does not undo it. */
const ERRORS = String.raw`
an event of that name | event: error\ndata: {"type":"error","error":{"type":"api_error"}}
an event of that name that is no JSON | event: error\ndata: secret
an event of that name without data | event: error\ndata:
nothing but a message | data: {"message":"secret"}
nothing but a code | data: {"code":500}
a detail | data: {"detail":"secret"}
an error of vLLM | data: {"object":"error","message":"secret","type":"InternalServerError","code":500}
a field of that name | error: {"code":500,"message":"secret","type":"server_error"}
a text | data: {"error":"secret"}
the end of a choice | data: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}
the end of a choice, in another word | data: {"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]} | provider_overloaded
data that is no JSON | data: secret
`

function errorCase([name = '', text = '', type = 'provider_unavailable']: readonly string[]) {
  const sent = `${text.replaceAll(String.raw`\n`, '\n')}\n\ndata: [DONE]\n\n`
  return [`an error amid a stream: ${name}`, goesOn(ends(sent), { cut: 'Hel', type })] as const
}

const isCut = { cut: 'Hel' }
const breaks: Behaviour = (response) => void response.destroy()

const CUT: Cases = {
  'a break amid a stream': goesOn(breaks, isCut),
  'a break amid a stream with an empty finish in each chunk': goesOn(breaks, isCut, [
    chunk({ content: 'Hel' }, ''),
  ]),
  'a break amid an event': goesOn(
    (response) =>
      void response.write(sse([chunk({ content: 'lo' })], false).slice(0, -30), () => response.destroy()),
    isCut,
  ),
  'a break before the second of two choices': {
    ...goesOn(breaks, isCut, [chunk({ content: 'Hel' }), chunk({}, 'stop')]),
    asked: { n: 2 },
  },
  'an end without a finish': goesOn(ends(''), isCut),
  'an event above the size limit': goesOn(endsWith(chunk({ content: 'x'.repeat(17 * 2 ** 20) })), isCut),
  'words, and an error in the same read': goesOn(
    endsWith(chunk({ content: 'lo' }), { error: { message: 'secret' } }),
    { cut: 'Hello' },
  ),
}

/** Short times are for providers that never answer: others may be slow on a busy machine. */
const hurried = { timeouts: { ...UNHURRIED, first_token_ms: 300 } }

const LATE: Cases = {
  silence: {
    ...does(stall, MEANINGS.timeout),
    provider: { timeouts: { first_token_ms: 300, total_ms: 300 } },
  },
  'a stream of a role alone': ofStream(events(role), MEANINGS.timeout, hurried),
  'a stream of two comments': ofStream(writes(': still here\n\n: still here\n\n'), MEANINGS.timeout, hurried),
  'a stream of signs of life, which have so much time and no more': ofStream(
    (response) => {
      response.writeHead(200).flushHeaders()
      const signs = setInterval(() => response.write(': still here\n\n'), 50)
      response.once('close', () => clearInterval(signs))
    },
    MEANINGS.timeout,
    { timeouts: { ...UNHURRIED, first_token_ms: 300, keep_alive_ms: 600 } },
  ),
  'silence amid a stream': ofStream(
    events(chunk({ content: 'Hel' })),
    { cut: 'Hel', type: 'timeout' },
    { timeouts: { ...UNHURRIED, idle_ms: 300 } },
  ),
}

describeCases('fails with %s', {
  ...Object.fromEntries(rowsOf(REPORTS).flatMap(reportCases)),
  ...Object.fromEntries(rowsOf(WAITS).map(waitCase)),
  ...BROKEN,
  ...BEFORE_SENT,
  ...Object.fromEntries(rowsOf(ERRORS).map(errorCase)),
  ...CUT,
  ...LATE,
})
