import { describe, expect, it } from 'vitest'
import {
  AttemptFailure,
  failureInReply,
  failureOfStatus,
  type FailureKind,
} from '../../../../api/chat/routing/failure.ts'

describe('failureOfStatus', () => {
  it.each<[number, FailureKind]>([
    [201, 'invalidReply'],
    [204, 'invalidReply'],
    [307, 'invalidReply'],
    [399, 'invalidReply'],
    [400, 'refused'],
    [401, 'deniedUs'],
    [408, 'timeout'],
    [413, 'refused'],
    [422, 'refused'],
    [429, 'rateLimited'],
    [499, 'deniedUs'],
    [500, 'failed'],
    [503, 'overloaded'],
    [504, 'timeout'],
    [524, 'timeout'],
    [529, 'overloaded'],
  ])('%i: %s', (status, kind) => {
    expect(failureOfStatus(status)).toMatchObject({ kind, status })
  })

  it.each<[string, FailureKind]>([
    ['content_filter', 'filtered'],
    ['content_policy_violation', 'filtered'],
    ['context_length_exceeded', 'tooLong'],
    ['rate_limit_exceeded', 'rateLimited'],
    ['invalid_value', 'refused'],
  ])('a refusal called %s: %s', (code, kind) => {
    expect(failureOfStatus(400, { code })).toMatchObject({ kind, status: 400, code })
    // Elsewhere the status says more.
    expect(failureOfStatus(500, { code }).kind).toBe('failed')
  })
})

describe('failureInReply', () => {
  it.each<[string | number | undefined, FailureKind, number]>([
    [399, 'invalidReply', 200],
    [400, 'refused', 400],
    ['429', 'rateLimited', 429],
    [599, 'failed', 599],
    [600, 'invalidReply', 200],
    [429.5, 'invalidReply', 200],
    ['content_filter', 'filtered', 200],
    ['server_error', 'invalidReply', 200],
    [undefined, 'invalidReply', 200],
  ])('%s: %s', (code, kind, status) => {
    expect(failureInReply(code)).toMatchObject({ kind, status })
  })

  it('keeps the word of the provider for the log', () => {
    expect(failureInReply('server_error').code).toBe('server_error')
  })
})

describe('AttemptFailure', () => {
  it.each<[FailureKind, { harmless: boolean; endsModel: boolean }]>([
    ['connection', { harmless: false, endsModel: false }],
    ['timeout', { harmless: false, endsModel: false }],
    ['rateLimited', { harmless: false, endsModel: false }],
    ['overloaded', { harmless: false, endsModel: false }],
    ['failed', { harmless: false, endsModel: false }],
    ['deniedUs', { harmless: false, endsModel: false }],
    ['invalidReply', { harmless: false, endsModel: false }],
    ['cut', { harmless: false, endsModel: false }],
    ['refused', { harmless: true, endsModel: true }],
    ['tooLong', { harmless: true, endsModel: true }],
    ['filtered', { harmless: true, endsModel: true }],
    ['outOfTime', { harmless: true, endsModel: false }],
    ['notRead', { harmless: true, endsModel: false }],
    ['abandoned', { harmless: true, endsModel: true }],
  ])('%s has its consequences', (kind, { harmless, endsModel }) => {
    const { rule } = new AttemptFailure(kind)
    expect([rule.harmless ?? false, rule.endsModel ?? false]).toEqual([harmless, endsModel])
  })
})
