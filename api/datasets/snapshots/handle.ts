import type { Log } from '../../process/log.ts'
import type { Snapshot } from './open-snapshot.ts'

/** An open snapshot that several requests share; closed once it is retired and the last use has ended. */
export interface SnapshotHandle {
  readonly snapshot: Snapshot
  use<Result>(work: (snapshot: Snapshot) => Promise<Result>): Promise<Result>
  /** Ends further uses. Resolves once the snapshot is closed, or at once if it is in use; never rejects. */
  retire(): Promise<void>
}

export function shareSnapshot(snapshot: Snapshot, log: Log): SnapshotHandle {
  let users = 0
  let retired = false
  const closeIfUnused = async () => {
    if (users > 0) return
    try {
      await snapshot.close()
      log.info({ snapshot: snapshot.id }, 'snapshot closed')
    } catch (error) {
      // All answers were read, so a failed close is harmless.
      log.error({ snapshot: snapshot.id, err: error }, 'snapshot cannot be closed')
    }
  }
  return {
    snapshot,
    async use(work) {
      users += 1
      try {
        return await work(snapshot)
      } finally {
        users -= 1
        // The answer does not wait for it.
        if (retired) void closeIfUnused()
      }
    },
    async retire() {
      retired = true
      await closeIfUnused()
    },
  }
}
