/** A warehouse and a registry of any size for serving's part of the bench; app ids run from 1. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SUBCATEGORIES } from '../../../pipeline/contract/taxonomy.ts'
import { dateValue, literal } from '../../../pipeline/duckdb/sql-values.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'

/** The last day of the data. */
export const LAST_DAY = '2026-12-31'

/** Numbers of apps and days. */
export interface DataSize {
  readonly apps: number
  readonly days: number
  /** Share of the days on which rare apps have usage; default: one in eight. */
  readonly tail?: number
}

// Volumes follow a power law that the apps keep over time, with noise from day to day and slow ups and downs, each
// app's at a time of its own. The first hundredth has usage every day, the tail on one day in eight
// or as `tail` says.
const ADD_DAY = `
  INSERT INTO usage_daily
  SELECT $day, v.app_id, 1 + CAST(v.tokens / 20000 AS BIGINT), CAST(v.tokens * 0.8 AS BIGINT),
    CAST(v.tokens * 0.2 AS BIGINT)
  FROM (
    SELECT h.app_id,
      5e10 / pow(h.app_id, 1.1)
        * exp(2 * ((h.noise >> 40) % 1000 / 1000.0 - 0.5))
        * exp(sin(($number + hash(h.app_id) % 700) / 100.0)) AS tokens
    FROM (SELECT i AS app_id, hash(i, $number) AS noise FROM range(1, $apps + 1) AS t (i)) AS h
    WHERE h.noise % 1000 < 1000 * least(1, $tail + $apps / 100.0 / h.app_id)
  ) AS v`

const ADD_LEDGER = `
  INSERT INTO days
  SELECT day, 'made', CAST(sum(prompt_tokens) AS VARCHAR), now(), count(*), 0, 0, 0,
    sum(prompt_tokens) + sum(completion_tokens), 0, 0, 0
  FROM usage_daily GROUP BY day`

/** Fills the warehouse without raw files, and writes the registry of its apps: all public. */
export async function makeServingData(dataDir: string, memory: string, size: DataSize): Promise<void> {
  const registry = join(dataDir, 'raw', 'apps')
  mkdirSync(registry, { recursive: true })
  mkdirSync(join(dataDir, 'snapshots'))
  const warehouse = await openWarehouse(dataDir, memory)
  const { connection } = warehouse
  try {
    await connection.run(
      `COPY (${registryRows(size.apps)}) TO ${literal(join(registry, 'registry.parquet'))}`,
    )
    for (let number = 0; number < size.days; number += 1) {
      const day = dateValue(addDays(LAST_DAY, number + 1 - size.days))
      await connection.run(ADD_DAY, { day, number, apps: size.apps, tail: size.tail ?? 1 / 8 })
    }
    await connection.run(ADD_LEDGER)
  } finally {
    warehouse.close()
  }
}

/** One app in three has no tag, the others have one or two. */
function registryRows(apps: number): string {
  const tags = SUBCATEGORIES.map(literal).join(', ')
  const anyTag = (salt: number) =>
    `[${tags}][1 + CAST(hash(i, ${salt}) % ${SUBCATEGORIES.length} AS INTEGER)]`
  return `
    SELECT i AS app_id, 'App ' || i AS app_name, 'public' AS visibility,
      CASE WHEN hash(i, 3) % 3 = 0 THEN [] ELSE list_distinct([${anyTag(1)}, ${anyTag(2)}]) END AS subcategories,
      CAST(NULL AS BIGINT) AS alias_of, TIMESTAMP '2025-01-01' AS updated_at
    FROM range(1, ${apps + 1}) AS t (i)`
}
