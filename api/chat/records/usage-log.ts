/** Writes usage records into the drop folder, where the next run counts them (CONTRACT 6, 7). */
import { join } from 'node:path'
import type { Clock } from '../../http/call.ts'
import type { Log } from '../../process/log.ts'
import { createRecordWriter, WRITER_LIMITS, type WriterLimits } from './record-writer.ts'
import { QUIET_MS, sealTornTails } from './torn-tails.ts'
import type { RecordUsage } from './usage-record.ts'

export interface UsageLog {
  readonly record: RecordUsage
  /** Number of records that are not yet in a file. */
  waiting(): number
  /** Writes waiting records as far as possible. No record may follow. */
  close(): Promise<void>
}

interface UsageLogOptions {
  readonly log: Log
  readonly clock: Clock
  readonly limits?: WriterLimits
}

/** Opens the writer over `dataDir` and repairs the files of dead processes. Never fails. */
export async function openUsageLog(
  dataDir: string,
  { log, clock, limits = WRITER_LIMITS }: UsageLogOptions,
): Promise<UsageLog> {
  const folder = join(dataDir, 'raw', 'usage')
  const sealing = await startSealing(folder, clock, log)
  const writer = createRecordWriter(folder, { log, clock, limits })
  return {
    record: writer.record,
    waiting: () => writer.waiting(),
    async close() {
      sealing.stop()
      await writer.close()
    },
  }
}

/** Repairs at once, and again later while there are half lines too recent to judge. */
async function startSealing(folder: string, clock: Clock, log: Log): Promise<{ stop(): void }> {
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    try {
      const left = await sealTornTails(folder, clock(), log)
      if (!left) clearInterval(timer)
      else timer ??= setInterval(() => void look(), QUIET_MS).unref()
    } catch (error) {
      log.error({ err: error }, 'usage files of former processes cannot be checked')
    }
  }

  await look()
  return { stop: () => clearInterval(timer) }
}
