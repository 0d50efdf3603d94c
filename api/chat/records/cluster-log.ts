/**
 * Writes usage records into a ClickHouse cluster, for the next night to count there (CONTRACT 6, USAGE_SOURCE).
 *
 * Nothing is lost: a record is in a file of the spool, DATA_DIR/spool/usage/, before `record` resolves (see
 * record-writer.ts), and a file is removed only after the cluster has confirmed all of its rows. While the cluster is
 * away, the files wait; those of a dead process are inserted by the others, or after the next start.
 *
 * Nothing counts twice: when an answer is lost, or the process dies before it removes the file, the rows are inserted
 * again. The pipeline counts a request_id once in a day. A repeated insert is the same block, row by row, as a file
 * is never changed or divided, so a Replicated table drops it by itself; there is no need for a token, which old
 * releases do not know. A file holds one day, so that a shard takes its part of an insert in one piece or not at all.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClickHouseAddress } from '../../../pipeline/contract/clickhouse-address.ts'
import type { Clock } from '../../http/call.ts'
import type { Log } from '../../process/log.ts'
import { openClusterTable } from './cluster-insert.ts'
import { createSender } from './cluster-sender.ts'
import { openSpool } from './cluster-spool.ts'
import { createRecordWriter, WRITER_LIMITS, type WriterLimits } from './record-writer.ts'
import { QUIET_MS } from './torn-tails.ts'
import type { UsageLog } from './usage-log.ts'

/** How the cluster is fed; the limits in force are CLUSTER_LOG_LIMITS. Times in milliseconds. */
interface ClusterLogLimits extends WriterLimits {
  /** Time between two rounds of inserts: how long records gather. */
  readonly gatherMs: number
  /** The pause doubles after each round that failed, up to this. */
  readonly longestPauseMs: number
  /** Files per round, so that the one that is written meanwhile does not grow for too long. */
  readonly filesPerRound: number
  /** Time that `close` may take to insert what is left. */
  readonly closeMs: number
}

export const CLUSTER_LOG_LIMITS: ClusterLogLimits = {
  ...WRITER_LIMITS,
  gatherMs: 1000,
  longestPauseMs: 15_000,
  filesPerRound: 100,
  closeMs: 5000,
}

interface ClusterLogOptions {
  readonly log: Log
  readonly clock: Clock
  readonly limits?: ClusterLogLimits
}

/** Opens the writer over `dataDir` and begins to insert what lies in the spool. Never fails. */
export function openClusterLog(
  dataDir: string,
  cluster: ClickHouseAddress,
  { log, clock, limits = CLUSTER_LOG_LIMITS }: ClusterLogOptions,
): UsageLog {
  const folder = join(dataDir, 'spool', 'usage')
  const writer = createRecordWriter(folder, { log, clock, limits })
  const spool = openSpool(folder, clock)
  const table = openClusterTable(cluster)
  const giveUp = new AbortController()
  const sender = createSender(spool, (rows) => table.insert(rows, giveUp.signal), log)
  const rounds = startRounds(limits, async () => {
    spool.add(await writer.finish())
    // Comes behind finish(), so that no file that this process still writes can look dead to it.
    await spool.takeOver().catch(sender.hindered)
    return await sender.send(limits.filesPerRound)
  })
  const alive = setInterval(() => void spool.keepAlive().catch(sender.hindered), QUIET_MS / 4).unref()

  return {
    record: writer.record,
    waiting: () => writer.waiting() + spool.records(),
    async close() {
      const deadline = setTimeout(() => giveUp.abort(), limits.closeMs)
      await rounds.stop()
      spool.add(await writer.close())
      await sender.send(Infinity)
      clearTimeout(deadline)
      clearInterval(alive)
      await table.close()
    },
  }
}

/** Repeats a round after a pause, which doubles while rounds fail. */
function startRounds(
  { gatherMs, longestPauseMs }: ClusterLogLimits,
  round: () => Promise<boolean>,
): { stop(): Promise<void> } {
  const stopping = new AbortController()

  async function run(): Promise<void> {
    let pause = gatherMs
    while (!stopping.signal.aborted) {
      await sleep(pause, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined)
      if (stopping.signal.aborted) return
      pause = (await round()) ? gatherMs : Math.min(2 * pause, longestPauseMs)
    }
  }

  const ended = run()
  return {
    stop() {
      stopping.abort()
      return ended
    },
  }
}
