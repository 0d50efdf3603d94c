import { expect, it } from 'vitest'
import { BREAKER_RULES, createBreakers, type AttemptResult } from '../../../../api/chat/routing/breaker.ts'

const A = { model: 'm/a', provider: 'alpha' }
const B = { model: 'm/a', provider: 'beta' }
const OTHER = { model: 'm/b', provider: 'alpha' }

function start() {
  let now = 1_000_000
  const changes: string[] = []
  const breakers = createBreakers(
    {
      breakerChanged: ({ provider, model, open }) =>
        changes.push(`${provider} ${model} ${open ? 'opens' : 'closes'}`),
    },
    { now: () => now },
  )
  return {
    changes,
    breakers,
    pass: (ms: number) => void (now += ms),
    first: () => breakers.order([A, B])[0],
    attempt: (result: AttemptResult, retryAfterSeconds?: number) => {
      breakers.ended(breakers.began(A), result, retryAfterSeconds)
    },
  }
}

it('opens after three failures in a row: the candidate is tried last, never left out', () => {
  const { breakers, attempt, first, changes } = start()
  attempt('failed')
  attempt('failed')
  expect(first()).toBe(A)
  attempt('failed')
  expect(breakers.order([A, B])).toEqual([B, A])
  expect(breakers.order([A])).toEqual([A])
  expect(changes).toEqual(['alpha m/a opens'])
})

it('opens when half of at least five attempts fail within its window', () => {
  const five = start()
  for (const result of ['failed', 'served', 'failed', 'served'] as const) five.attempt(result)
  expect(five.first()).toBe(A)
  five.attempt('failed')
  expect(five.first()).toBe(B)

  const { attempt, first, pass } = start()
  for (const result of ['served', 'failed', 'served', 'failed'] as const) attempt(result)
  expect(first()).toBe(A)
  attempt('served')
  expect(first()).toBe(A)
  attempt('failed')
  expect(first()).toBe(B)
  pass(BREAKER_RULES.openMs)
  attempt('served')
  expect(first()).toBe(A)
})

it('forgets what is older than its window', () => {
  const { attempt, first, pass } = start()
  for (const result of ['failed', 'served', 'failed', 'served'] as const) attempt(result)
  pass(BREAKER_RULES.windowMs + 2000)
  attempt('failed')
  expect(first()).toBe(A)
})

it('counts failures in a row from the last attempt that served', () => {
  const { attempt, first } = start()
  for (const result of ['failed', 'failed', 'served', 'failed'] as const) attempt(result)
  expect(first()).toBe(A)
})

it('counts from zero once it has closed', () => {
  const { attempt, first, pass } = start()
  for (let failure = 0; failure < 3; failure++) attempt('failed')
  attempt('failed', 1)
  pass(1000)
  for (const result of ['served', 'failed', 'failed'] as const) attempt(result)
  expect(first()).toBe(A)
})

it('is closed by one attempt that serves, made by one request at a time', () => {
  const { breakers, attempt, first, pass, changes } = start()
  for (let failure = 0; failure < 3; failure++) attempt('failed')
  pass(BREAKER_RULES.openMs)
  const failing = breakers.began(A)
  // A request with no other candidate.
  breakers.began(A)
  breakers.ended(failing, 'failed')
  expect(first()).toBe(B)
  pass(BREAKER_RULES.openMs)
  expect(first()).toBe(A)
  const probe = breakers.began(A)
  expect(first()).toBe(B)
  breakers.ended(probe, 'served')
  expect(first()).toBe(A)
  expect(changes).toEqual(['alpha m/a opens', 'alpha m/a closes'])
})

it('ignores attempts that began before it opened', () => {
  const { breakers, attempt, first, pass, changes } = start()
  const [served, failed, left] = [breakers.began(A), breakers.began(A), breakers.began(A)]
  for (let failure = 0; failure < 3; failure++) attempt('failed')
  breakers.ended(served, 'served')
  expect(first()).toBe(B)
  pass(BREAKER_RULES.openMs - 1)
  breakers.ended(failed, 'failed')
  pass(1)
  expect(first()).toBe(A)
  const probe = breakers.began(A)
  breakers.ended(left, 'neutral')
  expect(first()).toBe(B)
  breakers.ended(probe, 'served')
  expect(first()).toBe(A)
  expect(changes).toEqual(['alpha m/a opens', 'alpha m/a closes'])
})

it('stays open when that attempt fails', () => {
  const { attempt, first, pass } = start()
  for (let failure = 0; failure < 3; failure++) attempt('failed')
  pass(BREAKER_RULES.openMs)
  attempt('failed')
  expect(first()).toBe(B)
  pass(BREAKER_RULES.openMs - 1)
  expect(first()).toBe(B)
})

it("opens at once for the provider's Retry-After, up to a limit", () => {
  const { attempt, first, pass } = start()
  attempt('failed', 2)
  expect(first()).toBe(B)
  pass(2000)
  expect(first()).toBe(A)
  attempt('failed', 86_400)
  pass(BREAKER_RULES.openMsAtMost)
  expect(first()).toBe(A)
})

it('ignores a rejected request and a caller that left', () => {
  const { attempt, first } = start()
  for (let request = 0; request < 10; request++) attempt('neutral')
  expect(first()).toBe(A)
})

it('judges each provider of each model separately', () => {
  const { breakers, attempt } = start()
  for (let failure = 0; failure < 3; failure++) attempt('failed')
  expect(breakers.order([A, B])).toEqual([B, A])
  expect(breakers.order([OTHER, { ...OTHER, provider: 'beta' }])[0]).toBe(OTHER)
})

it("keeps the models in the caller's order", () => {
  const { breakers, attempt } = start()
  for (let failure = 0; failure < 3; failure++) attempt('failed')
  expect(breakers.order([A, OTHER])).toEqual([A, OTHER])
  expect(breakers.order([A, B, OTHER])).toEqual([B, A, OTHER])
  expect(breakers.order([OTHER, A, B])).toEqual([OTHER, B, A])
})

it('an attempt of a candidate that was dropped meanwhile has no effect', () => {
  const { breakers, attempt, changes } = start()
  for (let count = 0; count < 3; count++) attempt('failed')
  const trials = Array.from({ length: 3 }, () => breakers.began(A))
  breakers.keepOnly([B])
  for (const trial of trials) breakers.ended(trial, 'failed')
  expect(changes).toEqual(['alpha m/a opens', 'alpha m/a closes'])
})
