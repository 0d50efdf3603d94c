import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createChatMetrics, watchUsageLog } from '../../../api/chat/metrics.ts'
import { failedRecord, usageRecord } from '../../support/chat/usage-records.ts'

const CANDIDATE = { model: 'author/slug', provider: 'acme' }
const LABELS = 'model="author/slug",provider="acme"'

function watched() {
  const registry = new Registry()
  const observer = createChatMetrics(registry)
  const samples = async (name: string) =>
    (await registry.metrics())
      .split('\n')
      .filter((line) => line.startsWith(name) && !line.includes('_bucket'))
  return { registry, observer, samples }
}

describe('createChatMetrics', () => {
  it('counts requests, tokens and times by model and provider', async () => {
    const { observer, samples } = watched()
    observer.requestFinished(usageRecord({ prompt_tokens: 10, completion_tokens: 5 }))
    observer.requestFinished(
      usageRecord({ prompt_tokens: 1, completion_tokens: 2, stream: true, outcome: 'left' }),
    )
    expect(await samples('chat_requests_total')).toEqual([
      `chat_requests_total{${LABELS},outcome="completed",status="200",stream="false"} 1`,
      `chat_requests_total{${LABELS},outcome="left",status="200",stream="true"} 1`,
    ])
    expect(await samples('chat_tokens_total')).toEqual([
      `chat_tokens_total{${LABELS},kind="prompt"} 11`,
      `chat_tokens_total{${LABELS},kind="completion"} 7`,
    ])
    expect(await samples('chat_usage_missing_total')).toEqual([])
    expect(await samples('chat_first_token_seconds')).toEqual([
      `chat_first_token_seconds_sum{${LABELS}} 0.024`,
      `chat_first_token_seconds_count{${LABELS}} 2`,
    ])
    expect(await samples('chat_request_duration_seconds')).toEqual([
      `chat_request_duration_seconds_sum{${LABELS}} 0.068`,
      `chat_request_duration_seconds_count{${LABELS}} 2`,
    ])
  })

  it('counts unserved requests, requests without an app, and requests with unknown tokens', async () => {
    const { observer, samples } = watched()
    observer.requestFinished(failedRecord({ app_id: 0 }))
    observer.requestFinished(usageRecord({ prompt_tokens: null, completion_tokens: null }))
    expect(await samples('chat_requests_total')).toEqual([
      'chat_requests_total{model="none",provider="none",outcome="failed",status="502",stream="false"} 1',
      `chat_requests_total{${LABELS},outcome="completed",status="200",stream="false"} 1`,
    ])
    expect(await samples('chat_usage_missing_total')).toEqual([`chat_usage_missing_total{${LABELS}} 1`])
    const tokens = await samples('chat_tokens_total')
    expect(tokens.map((line) => line.split(' ').at(-1))).toEqual(['0', '0', '0', '0'])
    expect(await samples('chat_requests_unattributed_total')).toEqual(['chat_requests_unattributed_total 1'])
    expect(await samples('chat_first_token_seconds_count')).toHaveLength(1)
  })

  it('shows the share of served requests with unknown tokens, by provider', async () => {
    const { observer, samples } = watched()
    const unknown = { prompt_tokens: null, completion_tokens: null }
    observer.requestFinished(failedRecord())
    observer.requestFinished(usageRecord(unknown))
    observer.requestFinished(usageRecord({ ...unknown, model: 'a/two' }))
    observer.requestFinished(usageRecord())
    observer.requestFinished(usageRecord())
    observer.requestFinished(usageRecord({ provider: 'other' }))
    expect(await samples('chat_usage_unknown_ratio')).toEqual([
      'chat_usage_unknown_ratio{provider="acme"} 0.5',
      'chat_usage_unknown_ratio{provider="other"} 0',
    ])
  })

  it('counts attempts and fallbacks and shows open breakers', async () => {
    const { observer, samples } = watched()
    observer.attemptFinished({ ...CANDIDATE, outcome: 'timeout', ms: 1500 })
    observer.attemptFinished({ ...CANDIDATE, outcome: 'served', ms: 500 })
    observer.fellBack(CANDIDATE)
    observer.breakerChanged({ ...CANDIDATE, open: true })
    expect(await samples('chat_attempts_total')).toEqual([
      `chat_attempts_total{${LABELS},outcome="timeout"} 1`,
      `chat_attempts_total{${LABELS},outcome="served"} 1`,
    ])
    expect(await samples('chat_attempt_duration_seconds_sum')).toEqual([
      `chat_attempt_duration_seconds_sum{${LABELS}} 2`,
    ])
    expect(await samples('chat_fallbacks_total')).toEqual([`chat_fallbacks_total{${LABELS}} 1`])
    expect(await samples('chat_breaker_open')).toEqual([`chat_breaker_open{${LABELS}} 1`])
    observer.breakerChanged({ ...CANDIDATE, open: false })
    expect(await samples('chat_breaker_open')).toEqual([`chat_breaker_open{${LABELS}} 0`])
  })
})

it('has buckets from a cached first token to a long reasoning call', async () => {
  const { observer, registry } = watched()
  observer.requestFinished(usageRecord())
  observer.attemptFinished({ ...CANDIDATE, outcome: 'served', ms: 1 })
  const text = await registry.metrics()
  for (const name of [
    'chat_attempt_duration_seconds',
    'chat_first_token_seconds',
    'chat_request_duration_seconds',
  ]) {
    const bounds = [...text.matchAll(new RegExp(`^${name}_bucket\\{le="([^"]+)"`, 'gm'))].map(([, le]) => le)
    expect(bounds.at(0), name).toBe('0.05')
    expect(bounds.slice(-2), name).toEqual(['600', '+Inf'])
  }
})

describe('watchUsageLog', () => {
  it('shows how many records wait', async () => {
    const { registry, samples } = watched()
    let waiting = 3
    watchUsageLog(registry, { waiting: () => waiting })
    expect(await samples('usage_records_waiting')).toEqual(['usage_records_waiting 3'])
    waiting = 0
    expect(await samples('usage_records_waiting')).toEqual(['usage_records_waiting 0'])
  })
})
