/** The last look before anything is deleted: a directory that lost much at once is more likely half-read. */
import type { DeletionGate } from '../directory/connection-options.ts'
import { SyncFailure } from '../failures.ts'
import type { Plan } from './plan.ts'

/**
 * The failure that keeps this plan from being carried out without the operator's leave, if there is one;
 * `removedMembers` go from groups that stay.
 */
export function deletionFault(
  { deletions, received, before }: Plan,
  removedMembers: number,
  gate: DeletionGate,
): SyncFailure | undefined {
  if (received === 0 && before.groups > 0) {
    return new SyncFailure(
      'directory_empty',
      `the directory has no groups, and ${before.groups} are known here`,
    )
  }
  const groups = deletions.length
  if (exceedsGate(groups, before.groups, gate)) {
    return new SyncFailure('deletion_threshold_exceeded', `${groups} of ${before.groups} groups would go`)
  }
  if (exceeds(removedMembers, before.members, { free: gate.members, percent: gate.percent })) {
    const detail = `${removedMembers} of ${before.members} memberships would go`
    return new SyncFailure('deletion_threshold_exceeded', detail)
  }
  return undefined
}

/** Whether so many of all groups are more than the gate lets through. */
export function exceedsGate(groups: number, all: number, gate: DeletionGate): boolean {
  return exceeds(groups, all, { free: gate.groups, percent: gate.percent })
}

// In whole numbers, so that the share itself is still allowed.
function exceeds(
  lost: number,
  before: number,
  { free, percent }: { readonly free: number; readonly percent: number },
): boolean {
  return lost > free && lost * 100 > before * percent
}
