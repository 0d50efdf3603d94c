import type { Queries } from '../store/store.ts'

/** The values of one row, in the order of its columns. */
export type Row = readonly (string | number | null)[]

// Batch sizes; few sizes mean few different statements to prepare.
const SIZES = [100, 10, 1] as const

/**
 * Runs a statement per batch of rows. `sql` receives the placeholders of the rows, such as `($1, $2), ($3, $4)`. The
 * event loop gets its turn between batches.
 */
export async function inBatches(
  queries: Queries,
  rows: readonly Row[],
  sql: (placeholders: string) => string,
): Promise<void> {
  let done = 0
  for (const size of SIZES) {
    for (; rows.length - done >= size; done += size) {
      const batch = rows.slice(done, done + size)
      await queries.query(sql(placeholders(batch)), batch.flat())
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

function placeholders(rows: readonly Row[]): string {
  let number = 0
  return rows.map((row) => `(${row.map(() => `$${(number += 1)}`).join(', ')})`).join(', ')
}
