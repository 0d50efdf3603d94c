/** What is used of each limit in each window, in the store, so that restarts and several processes agree. */
import { z } from 'zod'
import { collectTurn, places, type RequestStore } from '../store/request-store.ts'

/** The key of a row, as `windowKey` makes it. */
type Window = string

/** The window of a policy that ends at this time, for a key or an account. */
export function windowKey(policy: string, subject: string, ends: number): Window {
  return [policy, subject, new Date(ends).toISOString()].join(SEPARATOR)
}

// None of the parts contains it.
const SEPARATOR = '\n'

const USED = (rows: number) => `
  SELECT policy, subject, window_ends, used FROM quotas
  WHERE (policy, subject, window_ends) IN (VALUES ${places(3, rows)})`
const COUNT = (rows: number) => `
  INSERT INTO quotas (policy, subject, window_ends, used) VALUES ${places(4, rows)}
  ON CONFLICT (policy, subject, window_ends) DO UPDATE SET used = quotas.used + excluded.used
  RETURNING policy, subject, window_ends, used`
const DELETE_PAST = 'DELETE FROM quotas WHERE window_ends < $1'

/** Past windows are deleted this often, and this late, since the clocks of several machines differ. */
const DELETE_EVERY_MS = 60_000
const DELETE_LATE_MS = 120_000

const rowsSchema = z.array(
  z.object({ policy: z.string(), subject: z.string(), window_ends: z.string(), used: z.number() }),
)

function usedByWindow(rows: readonly unknown[]): Map<Window, number> {
  const parsed = rowsSchema.parse(rows)
  return new Map(parsed.map((row) => [[row.policy, row.subject, row.window_ends].join(SEPARATOR), row.used]))
}

/** The counts in `store`: one statement reads, and one counts, for all requests of a turn of the event loop. */
export function createQuotas(store: RequestStore) {
  let deletedAt = 0
  return {
    /** What is used in a window. */
    used: collectTurn(async (windows: readonly Window[]) => {
      const wanted = [...new Set(windows)]
      const values = wanted.flatMap((window) => window.split(SEPARATOR))
      const used = usedByWindow(await store.query(USED(wanted.length), values))
      return (window) => used.get(window) ?? 0
    }),

    /** Counts an amount; resolves to what is used with it and with all that was counted before it, in any process. */
    count: collectTurn(async (counts: readonly { readonly window: Window; readonly amount: number }[]) => {
      const sums = new Map<Window, number>()
      for (const { window, amount } of counts) sums.set(window, (sums.get(window) ?? 0) + amount)
      // In one order, since PostgreSQL locks one row after the other.
      const rows = [...sums].toSorted(([one], [other]) => (one < other ? -1 : 1))
      const values = rows.flatMap(([window, sum]) => [...window.split(SEPARATOR), sum])
      const used = usedByWindow(await store.query(COUNT(rows.length), values))
      for (const [window, sum] of rows) used.set(window, (used.get(window) ?? 0) - sum)
      return ({ window, amount }) => {
        const total = (used.get(window) ?? 0) + amount
        used.set(window, total)
        return total
      }
    }),

    /** Deletes past windows now and then. */
    deletePast(now: number): void {
      if (Math.abs(now - deletedAt) < DELETE_EVERY_MS) return
      deletedAt = now
      // Whatever is left over goes the next time.
      store.query(DELETE_PAST, [new Date(now - DELETE_LATE_MS).toISOString()]).catch(() => undefined)
    },
  }
}
