/** What an administrator may choose for a connection. */

/** Where members come from: the list of groups, one request per group, or nowhere. */
export const MEMBER_MODES = ['inline', 'per_group', 'off'] as const
export type MemberMode = (typeof MEMBER_MODES)[number]

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
