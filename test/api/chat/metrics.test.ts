/** CONTRACT 4.6: the chat metrics in /metrics. Labels hold names of the configuration alone. */
import { beforeAll, expect, it } from 'vitest'
import { startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import { completion, json, status } from '../../support/chat/upstream.ts'

let chat: ScriptedChat
beforeAll(async () => {
  chat = await startScriptedChat({
    models: { 'a/one': [{ name: 'alpha' }, { name: 'beta', model: 'second' }] },
    behaviours: { second: json({ ...completion(), usage: undefined }) },
  })
  const headers = { 'HTTP-Referer': 'https://app.example' }
  await (await chat.api.ask({ stream: true }, { headers })).text()
  chat.script(status(500))
  await chat.api.ask()
  await chat.api.ask({ model: 'client/wrote-this' })
})

it.each([
  'chat_requests_total{model="a/one",provider="alpha",outcome="completed",status="200",stream="true"} 1',
  'chat_requests_total{model="a/one",provider="beta",outcome="completed",status="200",stream="false"} 1',
  'chat_requests_total{model="none",provider="none",outcome="failed",status="400",stream="false"} 1',
  'chat_requests_unattributed_total 2',
  'chat_tokens_total{model="a/one",provider="alpha",kind="prompt"} 11',
  'chat_tokens_total{model="a/one",provider="alpha",kind="completion"} 7',
  'chat_usage_missing_total{model="a/one",provider="beta"} 1',
  'chat_attempts_total{model="a/one",provider="alpha",outcome="served"} 1',
  'chat_attempts_total{model="a/one",provider="alpha",outcome="provider_unavailable"} 1',
  'chat_fallbacks_total{model="a/one",provider="alpha"} 1',
  'chat_breaker_open{model="a/one",provider="alpha"} 0',
  'chat_first_token_seconds_count{provider="alpha"} 1',
  'chat_request_duration_seconds_count{provider="beta"} 1',
  'chat_attempt_duration_seconds_bucket{le="600",provider="alpha"} 2',
  'usage_records_waiting 0',
])('%s', async (line) => {
  const text = await chat.api.metrics()
  expect(text.split('\n')).toContain(line)
  expect(text).not.toContain('client/wrote-this')
})
