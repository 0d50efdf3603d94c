/** Inserts the files of a spool into a cluster, one at a time, and tells in the log what hinders it. */
import { parseJson } from '../../untrusted/json.ts'
import type { Log } from '../../process/log.ts'
import { ClusterAway, usageRowSchema, type UsageRow } from './cluster-insert.ts'
import type { Spool } from './cluster-spool.ts'

export interface Sender {
  /** Inserts at most so many files; gives whether that went well. Never fails. */
  send(most: number): Promise<boolean>
  /** Takes note of a fault. The log tells each kind once, until nothing waits any more. */
  readonly hindered: (error: unknown, file?: string) => void
}

/** A sender of what lies in `spool`. */
export function createSender(
  spool: Spool,
  insert: (rows: readonly UsageRow[]) => Promise<void>,
  log: Log,
): Sender {
  const told = new Set<string>()

  function hindered(error: unknown, file?: string): void {
    const reason = error instanceof Error ? error.message : String(error)
    const kind = error instanceof ClusterAway ? error.name : (/^Code: \d+/.exec(reason)?.[0] ?? reason)
    if (!told.has(kind)) {
      log.error(
        { reason, file },
        'usage records cannot be inserted; they are kept in the spool and tried again',
      )
    }
    told.add(kind)
  }

  async function sendFile(path: string): Promise<void> {
    const lines = await spool.read(path)
    if (lines === undefined) return
    const { rows, strays } = sort(lines)
    if (rows.length > 0) await insert(rows)
    if (strays.length > 0)
      log.warn({ file: path, lines: strays.length }, 'what is no usage record moved aside')
    await spool.remove(path, strays)
  }

  return {
    hindered,
    async send(most) {
      for (const path of spool.files().slice(0, most)) {
        try {
          await sendFile(path)
        } catch (error) {
          hindered(error, path)
          // Others may be taken where this file is refused, for good or not.
          if (!(error instanceof ClusterAway)) spool.postpone(path)
          return false
        }
      }
      if (spool.files().length === 0 && told.size > 0) {
        told.clear()
        log.info('usage records are inserted again')
      }
      return true
    },
  }
}

/** The rows of a file, in its order, and what is none: half a line that a dead process left. */
function sort(lines: readonly string[]): { rows: UsageRow[]; strays: string[] } {
  const rows: UsageRow[] = []
  const strays: string[] = []
  for (const line of lines.filter((text) => text !== '')) {
    const row = usageRowSchema.safeParse(parseJson(line))
    if (row.success) rows.push(row.data)
    else strays.push(line)
  }
  return { rows, strays }
}
