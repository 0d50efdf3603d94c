/** How providers fail, each behaviour whole and streamed, alone and with a backup. */
import { describeCases, does, type Outcome, type ProviderCase } from '../../../support/chat/provider-case.ts'
import { anthropic, google, openai, vllm } from '../../../support/chat/provider-errors.ts'
import { chunk, completion, json, sse, status, stream } from '../../../support/chat/upstream.ts'

/** A failure of the provider, or of our account there: the next provider is tried. */
const BROKEN: Outcome = { status: 502, type: 'provider_unavailable', retryAfter: '5', backup: true }
/** Only this host rejects it. */
const UNSUPPORTED: Outcome = { status: 400, type: 'invalid_request', backup: true }
const TOO_LONG: Outcome = { status: 400, type: 'context_length_exceeded', backup: true }
/** Any other host would reject it too. */
const REFUSED: Outcome = { status: 400, type: 'invalid_request', backup: false }
const FILTERED: Outcome = { status: 400, type: 'content_policy_violation', backup: false }
const limited = (seconds: number): Outcome => ({
  status: 429,
  type: 'rate_limit_exceeded',
  retryAfter: String(seconds),
  backup: true,
})

const answers = (code: number, body: unknown, outcome: Outcome, headers = {}): ProviderCase =>
  does(status(code, body, headers), outcome)
const page = (code: number, title: string, outcome: Outcome): ProviderCase =>
  does(
    (response) =>
      void response
        .writeHead(code, { 'content-type': 'text/html' })
        .end(`<html><title>${title}</title></html>`),
    outcome,
  )
const secretly = (message: string, more = {}) => openai(`${message} (secret)`, more)

const STATUSES: Readonly<Record<string, ProviderCase>> = {
  'a bad key of Gemini, with 400 in a list': answers(
    400,
    google({ message: 'API key not valid (secret)', details: [{ reason: 'API_KEY_INVALID' }] }),
    BROKEN,
  ),
  'a bad key of xAI, with 400': answers(
    400,
    { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***secret' },
    BROKEN,
  ),
  'an empty balance of Anthropic, with 400': answers(
    400,
    anthropic('invalid_request_error', 'Your credit balance is too low. Buy secret credits.'),
    BROKEN,
  ),
  'a limit of use of Anthropic, with 400': answers(
    400,
    anthropic('invalid_request_error', 'You have reached your specified API usage limits.'),
    { ...BROKEN, retryAfter: null },
  ),
  'an unsupported parameter': answers(
    400,
    secretly("Unsupported parameter: 'max_tokens'", { code: 'unsupported_parameter' }),
    UNSUPPORTED,
  ),
  'no support of tools': answers(400, { error: { message: 'secret does not support tools' } }, UNSUPPORTED),
  'a model that DeepSeek does not have, with 400': answers(400, secretly('Model Not Exist'), BROKEN),
  'a refusal that says nothing more': answers(400, secretly('secret is malformed'), REFUSED),
  'a context of OpenAI': answers(400, secretly('too much', { code: 'context_length_exceeded' }), TOO_LONG),
  'a context of older vLLM': answers(
    400,
    vllm("This model's maximum context length is 8192 tokens."),
    TOO_LONG,
  ),
  'a context of vLLM': answers(
    400,
    { error: vllm("This model's maximum context length is 8192 tokens.") },
    TOO_LONG,
  ),
  'a context of Anthropic': answers(
    400,
    anthropic('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    TOO_LONG,
  ),
  'a context of llama.cpp': answers(
    400,
    {
      error: { code: 400, message: 'exceeds the available context size', type: 'exceed_context_size_error' },
    },
    TOO_LONG,
  ),
  'content that Azure filters': answers(
    400,
    {
      error: {
        message: 'The response was filtered (secret)',
        code: 'content_filter',
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
    FILTERED,
  ),
  'content that DeepSeek filters': answers(400, secretly('Content Exists Risk'), FILTERED),
  'a 401': answers(401, secretly('Incorrect API key provided', { code: 'invalid_api_key' }), BROKEN),
  'a 402': answers(402, secretly('Insufficient Balance'), BROKEN),
  'a 403 of a firewall': page(403, 'Forbidden', BROKEN),
  'a 404': answers(404, secretly('The model does not exist', { code: 'model_not_found' }), BROKEN),
  'a 413 of a proxy': page(413, 'Request Entity Too Large', {
    status: 400,
    type: 'payload_too_large',
    backup: true,
  }),
  'a 422 of Mistral': answers(
    422,
    { detail: [{ type: 'extra_forbidden', loc: ['body', 'secret'], msg: 'Extra inputs are not permitted' }] },
    UNSUPPORTED,
  ),
  'a 422 of Mistral inside its message': answers(
    422,
    { message: { detail: [{ type: 'extra_forbidden', msg: 'Extra inputs are not permitted' }] } },
    UNSUPPORTED,
  ),
  'a quota that is used up': answers(
    429,
    secretly('You exceeded your current quota', { type: 'insufficient_quota', code: 'insufficient_quota' }),
    { ...BROKEN, retryAfter: null },
  ),
  'a 429 with seconds': answers(429, secretly('slow'), limited(7), { 'retry-after': '7' }),
  'a 429 with a fraction of seconds': answers(429, secretly('slow'), limited(8), { 'retry-after': '7.66' }),
  'a 429 with milliseconds': answers(429, secretly('slow'), limited(8), { 'retry-after-ms': '7300' }),
  'a 429 with a date': answers(
    429,
    secretly('slow'),
    { status: 429, type: 'rate_limit_exceeded', backup: true },
    {
      'retry-after': new Date(Date.now() + 20_000).toUTCString(),
    },
  ),
  'a 429 of Gemini': answers(
    429,
    google({ code: 429, status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '37s' }] }),
    limited(37),
  ),
  'a 429 with words': answers(429, secretly('Please try again in 20s.'), limited(20)),
  'a 429 with words of Azure': answers(429, secretly('Please retry after 20 seconds.'), limited(20)),
  'a 429 with a number in the body': answers(
    429,
    { error: { message: 'slow', retry_after: 3.2 } },
    limited(4),
  ),
  'a 498 of Groq': answers(498, { error: { message: 'secret', code: 'capacity_exceeded' } }, BROKEN),
  'a 500 in HTML': page(500, 'secret', BROKEN),
  'a 529 of Anthropic': answers(529, anthropic('overloaded_error', 'Overloaded'), BROKEN),
  'a 200 in HTML': page(200, 'Checking your browser', BROKEN),
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
  'an error of older vLLM in a 200': inside(vllm('secret'), REFUSED),
  'an event of Anthropic in a 200': inside(anthropic('overloaded_error', 'secret'), BROKEN),
  'a context exceeded in a 200': inside({ message: 'context size exceeded', code: 400 }, TOO_LONG),
  'an empty balance of MiniMax in a 200': inside(
    { choices: null, base_resp: { status_code: 1008, status_msg: 'secret' } },
    BROKEN,
  ),
  'a number of Baidu in a 200': inside(
    { error_code: 17, error_msg: 'Open api daily request limit reached' },
    { ...BROKEN, retryAfter: null },
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
  'an error of vLLM after the first words': after(
    'data: {"object":"error","message":"secret","code":500}\n\ndata: [DONE]\n\n',
    BROKEN,
  ),
  'an event named error after the first words': after(
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"secret"}}\n\n',
    BROKEN,
  ),
  'an event named error that is a context': after(
    'event: error\ndata: {"message":"context size exceeded","code":400}\n\ndata: [DONE]\n\n',
    TOO_LONG,
  ),
  'an event named exception': after('event: exception\ndata: secret\n\ndata: [DONE]\n\n', BROKEN),
  'a field named error of llama.cpp': after('error: {"code":500,"message":"secret"}\n\n', BROKEN),
  'an error text after the first words': after('data: {"error":"secret"}\n\n', BROKEN),
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

describeCases('fails with %s', { ...STATUSES, ...IN_200, ...IN_STREAM, ...BROKEN_OFF })
