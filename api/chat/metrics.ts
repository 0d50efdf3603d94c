/** Metrics of the chat route. Labels hold names of the configuration and closed sets: never what a client sent. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { UNATTRIBUTED_APP_ID } from '../../pipeline/contract/dataset.ts'
import type { Candidate, ChatObserver } from './observer.ts'
import type { UsageLog } from './records/usage-log.ts'
import type { UsageRecord } from './records/usage-record.ts'

const CANDIDATE = ['model', 'provider'] as const

/** The label of requests that no provider served. */
const NONE = 'none'

/** Upper bounds in seconds: from a cached first token to a long reasoning call. */
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

/** An observer that keeps the chat metrics in `registry`. */
export function createChatMetrics(registry: Registry): ChatObserver {
  const observeRequest = requestMetrics(registry)
  const registers = [registry]
  const attempts = new Counter({
    name: 'chat_attempts_total',
    help: 'Attempts at a provider, by outcome: served, or the error type.',
    labelNames: [...CANDIDATE, 'outcome'],
    registers,
  })
  const attemptSeconds = new Histogram({
    name: 'chat_attempt_duration_seconds',
    help: 'Time from the start of an attempt to its end.',
    labelNames: CANDIDATE,
    buckets: SECONDS,
    registers,
  })
  const fallbacks = new Counter({
    name: 'chat_fallbacks_total',
    help: 'How often a request left this provider of this model for the next candidate.',
    labelNames: CANDIDATE,
    registers,
  })
  const breakers = new Gauge({
    name: 'chat_breaker_open',
    help: '1 while the provider is tried after the others of this model because it failed, 0 otherwise.',
    labelNames: CANDIDATE,
    registers,
  })
  return {
    requestFinished: observeRequest,
    attemptFinished({ model, provider, outcome, ms }) {
      attempts.inc({ model, provider, outcome })
      attemptSeconds.observe({ model, provider }, ms / 1000)
    },
    fellBack: ({ model, provider }) => fallbacks.inc({ model, provider }),
    breakerChanged: ({ model, provider, open }) => breakers.set({ model, provider }, open ? 1 : 0),
  }
}

function requestMetrics(registry: Registry): (record: UsageRecord) => void {
  const count = requestCounters(registry)
  const time = requestTimes(registry)
  return (record) => {
    const candidate = { model: record.model ?? NONE, provider: record.provider ?? NONE }
    count(record, candidate)
    time(record, candidate)
  }
}

type PerRequest = (record: UsageRecord, candidate: Candidate) => void

function requestCounters(registry: Registry): PerRequest {
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const requests = counter(
    'chat_requests_total',
    'Requests by provider, outcome and the status sent to the caller.',
    [...CANDIDATE, 'outcome', 'status', 'stream'],
  )
  const tokens = counter('chat_tokens_total', 'Tokens as the serving provider counted them.', [
    ...CANDIDATE,
    'kind',
  ])
  const usageMissing = counter(
    'chat_usage_missing_total',
    'Served requests without tokens reported by the provider.',
    CANDIDATE,
  )
  const unknownRatio = unknownTokens(registry)
  const unattributed = counter('chat_requests_unattributed_total', 'Requests without an app.', [])
  return (record, candidate) => {
    const { outcome, status, stream, prompt_tokens, completion_tokens } = record
    requests.inc({ ...candidate, outcome, status: String(status), stream: String(stream) })
    if (record.app_id === UNATTRIBUTED_APP_ID) unattributed.inc()
    tokens.inc({ ...candidate, kind: 'prompt' }, prompt_tokens ?? 0)
    tokens.inc({ ...candidate, kind: 'completion' }, completion_tokens ?? 0)
    if (record.requests === 0) return
    if (prompt_tokens === null) usageMissing.inc(candidate)
    unknownRatio(candidate.provider, prompt_tokens === null)
  }
}

/** The share of served requests without reported tokens, per provider, since this process began. */
function unknownTokens(registry: Registry): (provider: string, isUnknown: boolean) => void {
  const counts = new Map<string, { served: number; unknown: number }>()
  const ratio = new Gauge({
    name: 'chat_usage_unknown_ratio',
    help: "Share of a provider's served requests with unknown tokens, since the process began.",
    labelNames: ['provider'],
    registers: [registry],
  })
  return (provider, isUnknown) => {
    const count = counts.get(provider) ?? { served: 0, unknown: 0 }
    counts.set(provider, count)
    count.served += 1
    if (isUnknown) count.unknown += 1
    ratio.set({ provider }, count.unknown / count.served)
  }
}

function requestTimes(registry: Registry): PerRequest {
  const histogram = (name: string, help: string) =>
    new Histogram({ name, help, labelNames: CANDIDATE, buckets: SECONDS, registers: [registry] })
  const firstToken = histogram(
    'chat_first_token_seconds',
    'Time from the arrival of a request to its first meaningful token.',
  )
  const duration = histogram(
    'chat_request_duration_seconds',
    'Time from the arrival of a request to its end.',
  )
  return ({ duration_ms, first_token_ms }, candidate) => {
    duration.observe({ ...candidate }, duration_ms / 1000)
    if (first_token_ms !== null) firstToken.observe({ ...candidate }, first_token_ms / 1000)
  }
}

/** Shows in `registry` how many usage records wait in memory. */
export function watchUsageLog(registry: Registry, usage: Pick<UsageLog, 'waiting'>): void {
  const waiting: Gauge = new Gauge({
    name: 'usage_records_waiting',
    help: 'Usage records that wait in memory for a full or failing disk.',
    registers: [registry],
    collect: () => waiting.set(usage.waiting()),
  })
}
