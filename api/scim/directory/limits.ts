/** How often a request is tried, and how long it waits. */
export interface Patience {
  /** How often a request that failed by no fault of this service is tried in all. */
  readonly tries: number
  /** How often a request waits because the directory says so, and how long it waits at most each time. */
  readonly slowDowns: number
  readonly slowDownMs: number
}

/** What one sync may cost. */
export interface SyncLimits extends Patience {
  /** Bytes of one reply of the directory, as sent and as decoded. */
  readonly responseBytes: number
  /** Values in one reply, and how deep they may stand in one another: memory and time grow with them, not with bytes. */
  readonly responseElements: number
  readonly responseDepth: number
  /** Milliseconds to connect, and for one request as a whole, however slowly it drips. */
  readonly connectMs: number
  readonly requestMs: number
  /** The first pause between two tries. */
  readonly backoffMs: number
  /** Requests that a sync can do without. */
  readonly optional: Patience
  /** Groups requested in one page: what every directory known to page allows. */
  readonly pageSize: number
  readonly pages: number
  readonly groups: number
  readonly membersPerGroup: number
  readonly members: number
  /** Bytes of all groups and members together, as a sync keeps them. */
  readonly keptBytes: number
  /** Absent groups that are looked up one by one; above it, a second reading of the list has to confirm them. */
  readonly lookUps: number
  /** Requests at the same time where groups are requested one by one. */
  readonly parallel: number
}

const MIB = 1024 * 1024

/** The limits in force unless a test brings its own. */
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
  keptBytes: 256 * MIB,
  lookUps: 100,
  parallel: 4,
}
