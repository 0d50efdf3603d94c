/** The last look before anything is deleted: a directory that lost much at once is more likely half-read. */
import { SyncFailure } from '../failures.ts'
import type { Plan } from './plan.ts'

/** What one sync may remove without the operator's leave. */
export interface DeletionGate {
  /** Up to this many groups and members may always go: below it a share says little. */
  readonly groups: number
  readonly members: number
  /** Beyond these, no more than so many percent of what stood before. */
  readonly percent: number
}

/** The gate of a connection that says nothing else. */
export const DEFAULT_GATE: DeletionGate = { groups: 5, members: 50, percent: 20 }

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
