/** Usage records that could not be written yet: kept in memory up to a limit, and told in the log once. */
import type { Log } from '../log.ts'

/** The log line that carries a record for which there was no other place, in `usage_record`. */
export const LAST_RESORT = 'a usage record could not be written; this is all that is left of it'

/** Lines by the UTC day of their file. A day is failing from its first failed write to the next that succeeds. */
export interface WaitingRecords {
  isFailing(day: string): boolean
  /** Keeps lines of a day that is failing; what is too much goes into the log as it is. */
  add(day: string, lines: readonly string[]): void
  /** Takes note of a failed write and keeps its lines. */
  failed(day: string, lines: readonly string[], error: unknown): void
  /** Takes note of a write that succeeded. */
  succeeded(day: string): void
  /** Hands out all lines, which are then the caller's. */
  takeAll(): ReadonlyMap<string, readonly string[]>
  count(): number
  /** Puts all lines into the log. */
  tellAll(): void
}

/** An empty waiting room for at most `maxBytes` of lines. */
export function createWaitingRecords(log: Log, maxBytes: number): WaitingRecords {
  const failing = new Set<string>()
  let lines = new Map<string, string[]>()
  let bytes = 0
  let count = 0

  const tell = (line: string) => log.error({ usage_record: JSON.parse(line) }, LAST_RESORT)

  function keep(day: string, line: string): void {
    const size = Buffer.byteLength(line)
    if (bytes + size > maxBytes) return tell(line)
    bytes += size
    count += 1
    const others = lines.get(day)
    if (others === undefined) lines.set(day, [line])
    else others.push(line)
  }

  function takeAll(): ReadonlyMap<string, readonly string[]> {
    const taken = lines
    lines = new Map()
    bytes = 0
    count = 0
    return taken
  }

  return {
    isFailing: (day) => failing.has(day),
    add: (day, more) => more.forEach((line) => keep(day, line)),
    failed(day, more, error) {
      if (!failing.has(day)) {
        log.error(
          { day, err: error },
          'usage records cannot be written; they are kept in memory and tried again',
        )
      }
      failing.add(day)
      for (const line of more) keep(day, line)
    },
    succeeded(day) {
      if (failing.delete(day)) log.info({ day }, 'usage records are written again')
    },
    takeAll,
    count: () => count,
    tellAll() {
      for (const [, day] of takeAll()) day.forEach(tell)
    },
  }
}
