/** CONTRACT 6: how providers fail, each behaviour whole and streamed, alone and with a backup. */
import { describeCases, does, type Outcome, type ProviderCase } from '../../support/chat/provider-case.ts'
import { anthropic, google, openai, vllm } from '../../support/chat/provider-errors.ts'
import { chunk, completion, json, sse, status, stream } from '../../support/chat/upstream.ts'

/** A failure of the provider, or of our account there: the next provider is tried. */
const BROKEN: Outcome = { status: 502, type: 'provider_unavailable', retryAfter: '5', backup: true }
const TOO_LONG: Outcome = { status: 400, type: 'context_length_exceeded', backup: true }
/** The request is rejected: another host may take it. */
const REFUSED: Outcome = { status: 400, type: 'invalid_request', backup: true }
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
  'an unclassified refusal': answers(400, secretly('secret is malformed'), REFUSED),
  'a 401 with its key': answers(401, secretly('Incorrect API key provided'), BROKEN),
  'a 403 of a firewall': page(403, 'Forbidden', BROKEN),
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
  'a 429 with hours': answers(429, google({ details: [{ retryDelay: '86400s' }] }), limited(3600)),
  'a 429 with milliseconds in the details': answers(
    429,
    google({ details: [{ retryDelay: '450ms' }] }),
    limited(1),
  ),
  'a 429 with minutes in words': answers(429, secretly('Please try again in 1m2.5s.'), limited(63)),
  'a 429 with whole minutes in words': answers(429, secretly('try again in 2 minutes'), limited(120)),
  'a 429 that says later': answers(429, secretly('Please try again later.'), limited(5)),
  'a 500 in HTML': page(500, 'secret', BROKEN),
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
