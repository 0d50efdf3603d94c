import type { Log } from '../../process/log.ts'
import type { Snapshot } from './open-snapshot.ts'

/** An open snapshot that several requests share: closed once it is retired and the last use has ended. */
export interface SnapshotHandle {
  readonly snapshot: Snapshot
  use<Result>(work: (snapshot: Snapshot) => Promise<Result>): Promise<Result>
  /** No further use will begin. Resolves once the snapshot is closed, at once where it is still used; never rejects. */
  retire(): Promise<void>
}

/** Shares `snapshot`. */
export function shareSnapshot(snapshot: Snapshot, log: Log): SnapshotHandle {
  let users = 0
  let retired = false
  const closeIfUnused = async () => {
    if (users > 0) return
    try {
      await snapshot.close()
      log.info({ snapshot: snapshot.id }, 'snapshot closed')
    } catch (error) {
      // The answer that was read last is as good as any.
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
