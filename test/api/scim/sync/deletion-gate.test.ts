import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_GATE } from '../../../../api/scim/directory/connection-options.ts'
import { deletionFault } from '../../../../api/scim/sync/deletion-gate.ts'
import type { LocalGroup, Plan } from '../../../../api/scim/sync/plan.ts'

const GONE: LocalGroup = {
  id: 'id',
  scimId: '1',
  externalId: null,
  displayName: 'Group',
  memberDigest: null,
  memberCount: null,
  createdAt: '2026-11-20T00:00:00.000Z',
  deleted: false,
}

interface Loss {
  readonly deleted?: number
  readonly groups?: number
  readonly lostMembers?: number
  readonly members?: number
}

function faultOf({ deleted = 0, groups = 100, lostMembers = 0, members = 1000 }: Loss) {
  const plan: Plan = {
    changes: [],
    deletions: Array.from({ length: deleted }, () => GONE),
    received: groups - deleted,
    present: groups - deleted,
    before: { groups, members },
  }
  return deletionFault(plan, lostMembers, DEFAULT_GATE)?.failure
}

describe('deletionFault', () => {
  it.each<[Loss, string | undefined]>([
    [{ deleted: 5, groups: 6 }, undefined],
    [{ deleted: 6, groups: 7 }, 'deletion_threshold_exceeded'],
    [{ deleted: 6, groups: 30 }, undefined],
    [{ deleted: 6, groups: 29 }, 'deletion_threshold_exceeded'],
    [{ deleted: 20, groups: 100 }, undefined],
    [{ deleted: 21, groups: 100 }, 'deletion_threshold_exceeded'],
    [{ deleted: 1, groups: 1 }, 'directory_empty'],
    [{ deleted: 0, groups: 0 }, undefined],
    [{ lostMembers: 50, members: 51 }, undefined],
    [{ lostMembers: 51, members: 254 }, 'deletion_threshold_exceeded'],
    [{ lostMembers: 51, members: 255 }, undefined],
  ])('of %j: %s', (loss, failure) => {
    expect(faultOf(loss)).toBe(failure)
  })

  it('closes only on losses above both the number and the percentage', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.integer({ min: 1, max: 200 }), (deleted, stay) => {
        const groups = deleted + stay
        const expected = deleted > 5 && deleted / groups > 0.2 ? 'deletion_threshold_exceeded' : undefined
        expect(faultOf({ deleted, groups })).toBe(expected)
      }),
    )
  })
})
