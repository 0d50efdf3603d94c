/** CONTRACT 8: a changed day has a cause: figures, or the registry. Only figures make its coverage restated. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'
import { GATES } from '../../../pipeline/run-options.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { deliver, register, TemporaryFolders, queryCurrent } from '../../support/pipeline/nightly.ts'

const DAY = '2026-01-05'
const OTHER_DAY = '2026-01-06'

const SEVEN = '7,Seven,public,,,2025-01-01'
/** App 4 has usage but is not registered. */
const REGISTRY = [
  '1,One,public,,,2025-01-01',
  '2,Two,public,,,2025-01-01',
  '3,Of two,public,,2,2025-01-01',
  '6,Hidden,hidden,,,2025-01-01',
]

const folders = new TemporaryFolders()
const template = folders.make()
let dataDir = ''

beforeAll(async () => {
  dataDir = template
  register(dataDir, [...REGISTRY, SEVEN])
  for (const day of [DAY, OTHER_DAY]) use(day)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
})
beforeEach(() => {
  dataDir = folders.copy(template)
})
afterAll(() => folders.removeAll())

function use(day: string, file = 'rows.csv', tokens = 100): void {
  // Seven has no usage on the other day.
  const apps = day === DAY ? [1, 2, 3, 4, 6, 7] : [1, 2, 3, 4, 6]
  deliver(
    dataDir,
    day,
    apps.map((app) => `${app},${tokens * app},${app}`),
    file,
  )
}

const decide = (...rows: readonly string[]) => register(dataDir, rows, 'later.csv')

function run() {
  return runAt(dataDir, '2026-01-08T02:00:00Z', { accepted: [...GATES] })
}

async function causes(): Promise<string[]> {
  const rows = await queryCurrent(
    dataDir,
    `SELECT day, cause, apps_changed FROM restatements
     WHERE as_of = (SELECT as_of FROM meta) ORDER BY day, cause`,
  )
  return rows.map(({ day, cause, apps_changed }) => `${day} ${cause} ${apps_changed}`)
}

const CHANGES: readonly (readonly [string, () => void, readonly string[]])[] = [
  [
    'an app is hidden, a hidden one is shown, one is registered, an alias counts for another app, one has another name',
    () =>
      decide(
        '7,Seven,hidden,,,2026-01-07',
        '6,Hidden,public,,,2026-01-07',
        '4,Four,public,,,2026-01-07',
        '3,,public,,1,2026-01-07',
        '1,Renamed,public,,,2026-01-07',
      ),
    [
      `${DAY} added 1`,
      `${DAY} alias 2`,
      `${DAY} visibility 2`,
      `${OTHER_DAY} added 1`,
      `${OTHER_DAY} alias 2`,
      `${OTHER_DAY} visibility 1`,
    ],
  ],
  [
    'an app becomes an alias, and an alias an app of its own',
    () => decide('7,,public,,1,2026-01-07', '3,Three,public,,,2026-01-07'),
    [`${DAY} alias 4`, `${OTHER_DAY} alias 2`],
  ],
  [
    'an app leaves the registry, and figures change on another day',
    () => {
      register(dataDir, REGISTRY)
      use(OTHER_DAY, 'late.csv', 1)
    },
    [`${DAY} removed 1`, `${OTHER_DAY} figures 2`],
  ],
  [
    'figures change and an app is hidden on one day',
    () => {
      use(DAY, 'late.csv', 1)
      decide('7,Seven,hidden,,,2026-01-07')
    },
    [`${DAY} figures 3`, `${DAY} visibility 1`],
  ],
]

it.each(CHANGES)(
  'if %s, each changed day has its cause, and only figures restate it',
  async (_, change, expected) => {
    change()
    await run()
    expect(await causes()).toEqual(expected)
    const restated = await queryCurrent(
      dataDir,
      "SELECT day FROM coverage WHERE status = 'restated' ORDER BY day",
    )
    const corrected = expected.filter((each) => each.includes('figures')).map((each) => each.split(' ')[0])
    expect(restated.map(({ day }) => day)).toEqual(corrected)
  },
)

it('a warehouse without apps of the previous snapshot derives hidden ones from its public ones', async () => {
  const warehouse = await openWarehouse(dataDir, '1GB')
  await warehouse.connection.run('DELETE FROM published_apps')
  warehouse.close()
  decide('7,Seven,hidden,,,2026-01-07')
  await run()
  expect(await causes()).toEqual([`${DAY} visibility 1`])
})

it('a wrong day of more than 2^63 tokens can be corrected, and the type of totals stays', async () => {
  const types = `SELECT DISTINCT data_type FROM duckdb_columns()
    WHERE column_name IN ('total_tokens', 'tokens_before', 'tokens_after')`
  deliver(dataDir, DAY, ['1,9000000000000000000,9000000000000000000'], 'wrong.csv')
  await run()
  expect(await queryCurrent(dataDir, types)).toEqual([{ data_type: 'DECIMAL(38,0)' }])
  rmSync(join(dataDir, 'raw/usage', `date=${DAY}`, 'wrong.csv'))
  await run()
  expect(await causes()).toEqual([`${DAY} figures 1`])
  expect(await queryCurrent(dataDir, types)).toEqual([{ data_type: 'DECIMAL(38,0)' }])
})
