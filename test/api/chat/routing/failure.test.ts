import { expect, it } from 'vitest'
import { AttemptFailure, type FailureKind } from '../../../../api/chat/routing/failure.ts'

type Consequence = 'harmless' | 'endsModel' | 'refusesRequest'

it.each<[FailureKind, readonly Consequence[]]>([
  ['connection', []],
  ['timeout', []],
  ['rateLimited', []],
  ['overloaded', []],
  ['failed', []],
  ['denied', []],
  ['outOfCredit', []],
  ['quotaUsedUp', []],
  ['noSuchModel', []],
  ['invalidReply', []],
  ['cut', []],
  ['unsupported', ['harmless', 'refusesRequest']],
  ['tooLong', ['harmless', 'refusesRequest']],
  ['tooLarge', ['harmless', 'refusesRequest']],
  ['refused', ['harmless', 'endsModel', 'refusesRequest']],
  ['filtered', ['harmless', 'endsModel', 'refusesRequest']],
  ['outOfTime', ['harmless']],
  ['notRead', ['harmless']],
  ['abandoned', ['harmless', 'endsModel']],
])('a failure of the kind %s has its consequences', (kind, consequences) => {
  const { rule } = new AttemptFailure(kind)
  const has = (['harmless', 'endsModel', 'refusesRequest'] as const).filter((one) => rule[one] === true)
  expect(has).toEqual(consequences)
})
