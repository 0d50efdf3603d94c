/** The last look before anything is deleted: a directory that lost much at once is more likely half-read. */
import { SyncFailure } from '../failures.ts'
import type { Plan } from './plan.ts'

/** Up to this many may always go: below it a share says little. */
const FREE_DELETIONS = { groups: 5, members: 50 } as const

/** Above the free ones, no more than one in this many may go. */
const DELETED_SHARE = 5

/**
 * The failure that keeps this plan from being carried out without the operator's leave, if there is one;
 * `removedMembers` go from groups that stay.
 */
export function deletionFault(
  { deletions, received, before }: Plan,
  removedMembers: number,
): SyncFailure | undefined {
  if (received === 0 && before.groups > 0) {
    return new SyncFailure(
      'directory_empty',
      `the directory has no groups, and ${before.groups} are known here`,
    )
  }
  const groups = deletions.length
  if (isTooMuch(groups, before.groups, FREE_DELETIONS.groups)) {
    return new SyncFailure('deletion_threshold_exceeded', `${groups} of ${before.groups} groups would go`)
  }
  if (isTooMuch(removedMembers, before.members, FREE_DELETIONS.members)) {
    const detail = `${removedMembers} of ${before.members} memberships would go`
    return new SyncFailure('deletion_threshold_exceeded', detail)
  }
  return undefined
}

// In whole numbers, so that exactly a fifth is still allowed.
function isTooMuch(lost: number, before: number, free: number): boolean {
  return lost > free && lost * DELETED_SHARE > before
}
