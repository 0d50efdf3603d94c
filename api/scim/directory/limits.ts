export interface Patience {
  /** Total tries of a request, if it fails on the directory's side. */
  readonly tries: number
  /** How often a request waits at the directory's demand, and the longest wait. */
  readonly slowDowns: number
  readonly slowDownMs: number
}

/** Limits of one sync. */
export interface SyncLimits extends Patience {
  /** Bytes of one reply, both as sent and decoded. */
  readonly responseBytes: number
  /** Values in one reply and their depth: memory and time grow with them, not with bytes. */
  readonly responseElements: number
  readonly responseDepth: number
  /** Milliseconds to connect, and for one whole request. */
  readonly connectMs: number
  readonly requestMs: number
  /** The first pause between two tries, in milliseconds. */
  readonly backoffMs: number
  /** Requests that a sync can do without. */
  readonly optional: Patience
  /** Groups requested per page: the largest size that every known paging directory allows. */
  readonly pageSize: number
  readonly pages: number
  readonly groups: number
  readonly membersPerGroup: number
  readonly members: number
  /** Bytes of all groups and members together in memory. */
  readonly memoryBytes: number
  /** Absent groups that are requested one by one; above it, a second reading of the list confirms them. */
  readonly lookUps: number
  /** Concurrent requests for single groups. */
  readonly parallel: number
}

const MIB = 1024 * 1024

export const SYNC_LIMITS: SyncLimits = {
  responseBytes: 64 * MIB,
  responseElements: 4_000_000,
  responseDepth: 32,
  connectMs: 10_000,
  requestMs: 60_000,
  tries: 4,
  backoffMs: 500,
  slowDowns: 20,
  slowDownMs: 120_000,
  optional: { tries: 2, slowDowns: 2, slowDownMs: 10_000 },
  pageSize: 100,
  pages: 10_000,
  groups: 100_000,
  membersPerGroup: 100_000,
  members: 2_000_000,
  memoryBytes: 256 * MIB,
  lookUps: 100,
  parallel: 4,
}
