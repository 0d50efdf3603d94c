/** What one sync may cost. */
export interface SyncLimits {
  /** Bytes of one reply of the directory. */
  readonly responseBytes: number
  /** Milliseconds to connect, and for one request as a whole, however slowly it drips. */
  readonly connectMs: number
  readonly requestMs: number
  /** How often a request that failed by no fault of this service is tried in all, and the first pause between two tries. */
  readonly tries: number
  readonly backoffMs: number
  /** How often a request waits because the directory says so, and how long it waits at most each time. */
  readonly slowDowns: number
  readonly slowDownMs: number
  /** Groups asked for in one page: what every directory known to page allows. */
  readonly pageSize: number
  readonly pages: number
  readonly groups: number
  readonly membersPerGroup: number
  readonly members: number
  /** Absent groups that are looked up one by one; above it, a second reading of the list has to confirm them. */
  readonly lookUps: number
  /** Requests at the same time where groups are asked one by one. */
  readonly parallel: number
}

/** The limits in force unless a test brings its own. */
export const SYNC_LIMITS: SyncLimits = {
  responseBytes: 64 * 1024 * 1024,
  connectMs: 10_000,
  requestMs: 60_000,
  tries: 4,
  backoffMs: 500,
  slowDowns: 20,
  slowDownMs: 120_000,
  pageSize: 100,
  pages: 10_000,
  groups: 100_000,
  membersPerGroup: 100_000,
  members: 2_000_000,
  lookUps: 100,
  parallel: 4,
}
