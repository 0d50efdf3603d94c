/** Metrics of the chat route. Labels hold names of the configuration and closed sets: never what a client sent. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { UsageRecord } from './call.ts'
import type { Models } from './configuration.ts'
import type { UsageRecords } from './records.ts'

const CANDIDATE = ['model', 'provider'] as const

/** Upper bounds in seconds: from a cached first token to a long reasoning call. */
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

/** Keeps the chat metrics in `registry`; returns a function that counts a request which is over. */
export function createChatMetrics(registry: Registry, models: Models, records: UsageRecords) {
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers })
  const histogram = (name: string, help: string) =>
    new Histogram({ name, help, labelNames: ['provider'], buckets: SECONDS, registers })
  const ended = [...CANDIDATE, 'outcome'] as const
  const answered = [...ended, 'status', 'stream'] as const
  const requests = counter('chat_requests_total', 'Requests by outcome and sent status.', answered)
  const unattributed = counter('chat_requests_unattributed_total', 'Requests without an app.', [])
  const tokens = counter('chat_tokens_total', 'Tokens by the count of the provider.', [...CANDIDATE, 'kind'])
  const usageMissing = counter('chat_usage_missing_total', 'Served requests of unknown tokens.', CANDIDATE)
  const attempts = counter('chat_attempts_total', 'Attempts by outcome: served, or the error type.', ended)
  const fallbacks = counter('chat_fallbacks_total', 'Requests that went on to the next one.', CANDIDATE)
  const firstToken = histogram('chat_first_token_seconds', 'From arrival to the first meaningful token.')
  const request = histogram('chat_request_duration_seconds', 'From the arrival of a request to its end.')
  const attempt = histogram('chat_attempt_duration_seconds', 'From the start of an attempt to its end.')
  showState(registry, models, records)
  return (record: UsageRecord): void => {
    const { outcome, status, stream, prompt_tokens, completion_tokens, first_token_ms } = record
    // None served the request.
    const provider = record.provider ?? 'none'
    const candidate = { model: record.model ?? 'none', provider }
    requests.inc({ ...candidate, outcome, status: String(status), stream: String(stream) })
    if (record.app === undefined) unattributed.inc()
    tokens.inc({ ...candidate, kind: 'prompt' }, prompt_tokens ?? 0)
    tokens.inc({ ...candidate, kind: 'completion' }, completion_tokens ?? 0)
    if (record.requests > 0 && prompt_tokens === null) usageMissing.inc(candidate)
    request.observe({ provider }, record.duration_ms / 1000)
    if (first_token_ms !== null) firstToken.observe({ provider }, first_token_ms / 1000)
    for (const [index, { model, provider: tried, error_type, duration_ms }] of record.attempts.entries()) {
      attempts.inc({ model, provider: tried, outcome: error_type ?? 'served' })
      attempt.observe({ provider: tried }, duration_ms / 1000)
      if (index < record.attempts.length - 1) fallbacks.inc({ model, provider: tried })
    }
  }
}

/** The gauges, read with each scrape. */
function showState(registry: Registry, models: Models, records: UsageRecords): void {
  const breakers: Gauge<'model' | 'provider'> = new Gauge({
    name: 'chat_breaker_open',
    help: '1 from the failures of the provider until it serves again, 0 otherwise.',
    labelNames: CANDIDATE,
    registers: [registry],
    collect() {
      breakers.reset()
      for (const [model, { providers }] of models.current?.models ?? [])
        for (const { name: provider, health } of providers)
          breakers.set({ model, provider }, health.openUntil === undefined ? 0 : 1)
    },
  })
  const waiting: Gauge = new Gauge({
    name: 'usage_records_waiting',
    help: 'Usage records that wait in memory for a full or failing disk.',
    registers: [registry],
    collect: () => waiting.set(records.waiting),
  })
}
