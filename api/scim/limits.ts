export interface Patience {
  /** Total tries of a request, if it fails on the directory's side. */
  readonly tries: number
  /** How often a request waits at the directory's demand, and the longest wait. */
  readonly slowDowns: number
  readonly slowDownMs: number
}

/** Limits of one sync. */
export interface SyncLimits extends Patience {
  /** Bytes of one decoded reply. A larger page is requested in smaller parts. */
  readonly responseBytes: number
  /** Values in one reply and their depth: memory and time grow with them, not with bytes. */
  readonly responseElements: number
  readonly responseDepth: number
  /** Milliseconds to connect, and for one whole request. */
  readonly connectMs: number
  readonly requestMs: number
  /** The first pause between two tries, in milliseconds. */
  readonly backoffMs: number
  /** Groups requested per page, the largest first: the first size is one that every known directory allows. */
  readonly pageSizes: readonly number[]
  readonly pages: number
  readonly groups: number
  readonly members: number
  /** Absent groups of a complete list that are requested one by one; above it, a second reading confirms them. */
  readonly lookUps: number
  /** Concurrent requests for single groups. */
  readonly parallel: number
}

export const SYNC_LIMITS: SyncLimits = {
  responseBytes: 4 * 1024 * 1024,
  responseElements: 500_000,
  responseDepth: 32,
  connectMs: 10_000,
  requestMs: 60_000,
  tries: 4,
  backoffMs: 500,
  slowDowns: 20,
  slowDownMs: 120_000,
  pageSizes: [100, 25, 5, 1],
  pages: 10_000,
  groups: 100_000,
  members: 500_000,
  lookUps: 100,
  parallel: 4,
}

/** For requests that a sync can do without. */
export const OPTIONAL: Patience = { tries: 2, slowDowns: 2, slowDownMs: 10_000 }
