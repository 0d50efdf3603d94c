/** Usage records that wait in memory for a retry, up to a limit; the failure is logged once. */
import type { Log } from '../../process/log.ts'

/** The log line for a record that fits neither file nor memory; `usage_record` holds it. */
export const LAST_RESORT = 'a usage record could not be written; this is all that is left of it'

/** Lines by the UTC day of their file. A day fails from its first failed write to the next successful one. */
export interface WaitingRecords {
  isFailing(day: string): boolean
  /** Keeps lines of a failing day; lines beyond the limit are logged. */
  add(day: string, lines: readonly string[]): void
  /** Notes a failed write, and keeps its lines. */
  failed(day: string, lines: readonly string[], error: unknown): void
  /** The waiting lines; they stay until they are written. */
  list(): ReadonlyMap<string, readonly string[]>
  /** Notes that the first `written` lines of a day are written. */
  succeeded(day: string, written: number): void
  count(): number
  /** Logs all lines. */
  reportAll(): void
}

export function createWaitingRecords(log: Log, maxBytes: number): WaitingRecords {
  const failing = new Set<string>()
  const days = new Map<string, string[]>()
  let bytes = 0

  const logLine = (line: string) => log.error({ usage_record: JSON.parse(line) }, LAST_RESORT)

  function add(day: string, more: readonly string[]): void {
    const lines = days.get(day) ?? []
    days.set(day, lines)
    for (const line of more) {
      const size = Buffer.byteLength(line)
      if (bytes + size > maxBytes) logLine(line)
      else {
        bytes += size
        lines.push(line)
      }
    }
  }

  return {
    isFailing: (day) => failing.has(day),
    add,
    failed(day, more, error) {
      if (!failing.has(day)) {
        log.error({ day, err: error }, 'usage records cannot be written; they are kept and tried again')
      }
      failing.add(day)
      add(day, more)
    },
    list: () => new Map([...days].map(([day, lines]) => [day, [...lines]])),
    succeeded(day, written) {
      const gone = days.get(day)?.splice(0, written) ?? []
      bytes -= gone.reduce((sum, line) => sum + Buffer.byteLength(line), 0)
      if (days.get(day)?.length === 0) days.delete(day)
      failing.delete(day)
      log.info({ day, records: gone.length }, 'usage records are written again')
    },
    count: () => [...days.values()].reduce((sum, lines) => sum + lines.length, 0),
    reportAll() {
      for (const lines of days.values()) lines.forEach(logLine)
      days.clear()
    },
  }
}
