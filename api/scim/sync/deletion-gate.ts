/** Checks a plan before anything is deleted: a large loss at once more likely means an incomplete reading. */
import type { DeletionGate } from '../directory/connection-options.ts'
import { SyncFailure } from '../failures.ts'
import type { Plan } from './plan.ts'

/**
 * The failure that blocks this plan without `--allow-deletions`, if any; `removedMembers` are removed from groups that
 * stay.
 */
export function deletionFault(
  { deletions, received, before }: Plan,
  removedMembers: number,
  gate: DeletionGate,
): SyncFailure | undefined {
  if (received === 0 && before.groups > 0) {
    return new SyncFailure('directory_empty', `the directory has no groups, but ${before.groups} are stored`)
  }
  const groups = deletions.length
  if (exceedsGate(groups, before.groups, gate)) {
    return new SyncFailure(
      'deletion_threshold_exceeded',
      `${groups} of ${before.groups} groups would be removed`,
    )
  }
  if (exceeds(removedMembers, before.members, { free: gate.members, percent: gate.percent })) {
    const detail = `${removedMembers} of ${before.members} memberships would be removed`
    return new SyncFailure('deletion_threshold_exceeded', detail)
  }
  return undefined
}

/** Whether this share of all groups exceeds the gate. */
export function exceedsGate(groups: number, all: number, gate: DeletionGate): boolean {
  return exceeds(groups, all, { free: gate.groups, percent: gate.percent })
}

// In integers, so that exactly the percentage is allowed.
function exceeds(
  lost: number,
  before: number,
  { free, percent }: { readonly free: number; readonly percent: number },
): boolean {
  return lost > free && lost * 100 > before * percent
}
