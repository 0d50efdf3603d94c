/** The options of a connection. */

/** Where members come from: the list of groups, one request per group, or nowhere. */
export const MEMBER_MODES = ['inline', 'per_group', 'off'] as const
export type MemberMode = (typeof MEMBER_MODES)[number]

/** What one sync may remove without `--allow-deletions`. */
export interface DeletionGate {
  /** Up to these numbers removals are always allowed: of few items a percentage means little. */
  readonly groups: number
  readonly members: number
  /** Beyond them, the percentage that may be removed. */
  readonly percent: number
}

export const DEFAULT_GATE: DeletionGate = { groups: 5, members: 50, percent: 20 }
