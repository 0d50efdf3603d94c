/** CONTRACT 8: every check runs before publishing, and finds and names planted violations. */
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { beforeAll, describe, expect, it } from 'vitest'
import { sqlFile, sqlSections } from '../../../pipeline/duckdb/statements.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import {
  connectTo,
  currentSnapshot,
  deliver,
  register,
  withApps,
  withRegistry,
} from '../../support/pipeline/nightly.ts'

const CHECKS = Object.fromEntries(sqlSections('checks.sql'))

/** Statements on the snapshot that violate each check, and a part of the offending row. */
const VIOLATIONS: Readonly<Record<string, readonly (readonly [statement: string, named: string])[]>> = {
  'apps-described': [
    ["UPDATE apps SET app_name = 'Other' WHERE app_id = 2", '"app_id":"2"'],
    ["INSERT INTO app_daily VALUES (DATE '2026-01-06', 4, 1, 1, 1)", '"app_id":"4"'],
    ['UPDATE rankings SET app_id = 4 WHERE app_id = 2', '"app_id":"4"'],
  ],
  'coverage-complete': [
    ["DELETE FROM coverage WHERE day = DATE '2025-07-01'", '"day":"2025-07-01"'],
    ["INSERT INTO coverage VALUES (DATE '2026-01-07', 'complete', 0, 0)", '"day":"2026-01-07"'],
    ["UPDATE coverage SET status = 'missing' WHERE total_requests > 0", '"day":"2026-01-05"'],
    ["UPDATE coverage SET total_requests = 1 WHERE day = DATE '2026-01-04'", '"day":"2026-01-04"'],
    ["UPDATE coverage SET total_tokens = 1 WHERE day = DATE '2026-01-04'", '"day":"2026-01-04"'],
    ["INSERT INTO app_daily VALUES (DATE '2024-12-31', 1, 1, 1, 1)", '"day":"2024-12-31"'],
    ["INSERT INTO app_daily VALUES (DATE '2026-01-07', 1, 1, 1, 1)", '"day":"2026-01-07"'],
    ["UPDATE meta SET as_of = '2026-01-06T23:59:59Z'", '"day":"2026-01-06"'],
  ],
  'known-subcategories': [
    ["UPDATE apps SET subcategories = ['chess'] WHERE app_id = 1", '"subcategory":"chess"'],
    ["UPDATE rankings SET category = 'sports' WHERE category = 'creative' OR rank = 1", '"sports"'],
    [
      "UPDATE rankings SET category = 'coding' WHERE subcategory = 'game'",
      '"category":"coding","subcategory":"game"',
    ],
  ],
  'no-negative-number': [
    ...['requests', 'prompt_tokens', 'completion_tokens'].map(
      (column) => [`UPDATE app_daily SET ${column} = -1 WHERE app_id = 1`, '"app_id":"1"'] as const,
    ),
    ...['total_requests', 'total_tokens'].map(
      (column) => [`UPDATE rankings SET ${column} = -1`, '"window_days":'] as const,
    ),
  ],
  'one-row-per-app-day': [
    ['INSERT INTO app_daily SELECT * FROM app_daily LIMIT 1', '"app_above":'],
    ["INSERT INTO app_daily VALUES (DATE '2026-01-06', 2, 1, 1, 1)", '"app_above":"2"'],
    ["INSERT INTO app_daily VALUES (DATE '2026-01-06', 1, 1, 1, 1)", '"app_above":"2"'],
  ],
  'only-public-apps': [
    ["UPDATE warehouse.registry SET visibility = 'hidden' WHERE app_id = 1", '"app_id":"1"'],
    ['UPDATE warehouse.registry SET alias_of = 2 WHERE app_id = 1', '"alias_of":"2"'],
    ['DELETE FROM warehouse.registry WHERE app_id = 1', '"app_id":"1"'],
  ],
  'ranks-without-gaps': [
    ['DELETE FROM rankings WHERE rank = 1', '"first_rank":"2"'],
    ['UPDATE rankings SET rank = 3 WHERE rank = 2', '"last_rank":"3"'],
    ['UPDATE rankings SET rank = 1', '"last_rank":"1"'],
    ['UPDATE rankings SET app_id = 1 WHERE app_id = 2 AND window_days = 7', '"apps":"1"'],
    [
      'INSERT INTO rankings SELECT * REPLACE (CASE rank WHEN 2 THEN 4 ELSE 1 END AS rank) FROM rankings',
      '"last_rank":"4"',
    ],
  ],
  'models-conserved': [
    ["UPDATE model_daily SET requests = requests + 1 WHERE day = DATE '2026-01-05'", '"of_models":'],
    ["DELETE FROM model_daily WHERE day = DATE '2026-01-05'", '"day":"2026-01-05"'],
  ],
  'usage-conserved': [
    ['UPDATE app_daily SET requests = requests + 1', '"requests_published":'],
    ['UPDATE app_daily SET prompt_tokens = prompt_tokens + 1', '"tokens_published":'],
  ],
  'lists-in-order': [
    [
      "UPDATE rankings SET total_tokens = 10 ^ 6 WHERE rank = 2 AND sort = 'popular'",
      '"total_tokens":"1000000"',
    ],
    ["UPDATE rankings SET total_tokens = 7 WHERE sort = 'popular'", '"total_tokens":"7"'],
    ["UPDATE rankings SET rank = 3 - rank WHERE sort = 'trending' AND rank <= 2", '"app_id":"2"'],
    [
      "UPDATE app_daily SET prompt_tokens = 1000 WHERE day = DATE '2026-01-05'",
      '"window_days":1,"category":null,"subcategory":null,"rank":"1"',
    ],
    // Equal growth, in the wrong order of tokens, then of ids.
    [
      'UPDATE app_daily SET prompt_tokens = 5; UPDATE rankings SET app_id = rank, total_tokens = rank',
      '"rank":"2"',
    ],
    ['UPDATE app_daily SET prompt_tokens = 5; UPDATE rankings SET total_tokens = 7', '"rank":"2"'],
  ],
}

let connection: DuckDBConnection

beforeAll(async () => {
  const tagged = 'public,game,,2025-01-01'
  const registry = [`1,One,${tagged}`, `2,Two,${tagged}`, '3,Three,hidden,,,2025-01-01']
  const dataDir = withRegistry(registry, '2026-01-05', ['1,1,9', '2,2,9', '3,3,9'])
  deliver(dataDir, '2026-01-06', ['1,5,9', '2,10,9', '3,15,9'])
  await runAt(dataDir, '2026-01-10T02:00:00Z')
  connection = await connectTo()
  await connection.run(`
    ATTACH '${join(dataDir, 'warehouse.duckdb')}' AS private (READ_ONLY);
    ATTACH '${join(currentSnapshot(dataDir), 'app-rankings.duckdb')}' AS public (READ_ONLY);
    SET TimeZone = 'UTC';
    SET VARIABLE floor = DATE '2025-01-01';
    SET VARIABLE last_day = DATE '2026-01-09'`)
})

/** Fresh copies of both databases under the names in the checks. */
async function copies(): Promise<void> {
  for (const [name, source] of [
    ['warehouse', 'private'],
    ['snapshot', 'public'],
  ] as const) {
    await connection.run(`USE memory; DETACH DATABASE IF EXISTS ${name}; ATTACH ':memory:' AS ${name};
      COPY FROM DATABASE ${source} TO ${name}`)
  }
  await connection.run('USE snapshot')
}

async function offendingRows(check: string): Promise<string> {
  for (const name of ['resolve.sql#usage', 'rank.sql#day-totals']) await connection.run(sqlFile(name))
  const reader = await connection.runAndReadAll(CHECKS[check] ?? '')
  return JSON.stringify(reader.getRowObjectsJson())
}

it('every check has a planted violation, and states its rule in complete sentences on its first line', () => {
  expect(Object.keys(VIOLATIONS).toSorted()).toEqual(Object.keys(CHECKS).toSorted())
  for (const sql of Object.values(CHECKS)) expect(sql).toMatch(/^-- [A-Z].*[.)]\n/)
})

it('a failed check names the day, and the next run counts that day again', async () => {
  const dataDir = withApps('One')
  deliver(dataDir, '2026-01-06', ['1,5,1'])
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  const warehouse = await openWarehouse({ dataDir, memory: '1GB' })
  // As if the count had been wrong, under the fingerprint of the files.
  await warehouse.connection.run(
    "UPDATE usage_daily SET prompt_tokens = -5; UPDATE days SET content_hash = '-5'",
  )
  warehouse.close()
  register(dataDir, ['1,Other,public,,,2025-02-01'], 'later.csv')
  await expect(runAt(dataDir, '2026-01-07T03:00:00Z')).rejects.toThrow(
    /no-negative-number: .*\n.*"day":"2026-01-06"[^]*\nThe next run counts the days in these rows again/,
  )
  const { outcome } = await runAt(dataDir, '2026-01-07T04:00:00Z')
  expect(outcome).toBe('published')
})

describe.each(Object.entries(VIOLATIONS))('%s', (check, violations) => {
  it('holds for a published snapshot', async () => {
    await copies()
    expect(await offendingRows(check)).toBe('[]')
  })

  it.each(violations)('finds and names the violation of %j', async (statement, named) => {
    await copies()
    await connection.run(statement)
    expect(await offendingRows(check)).toContain(named)
  })
})
