/** A snapshot with values that are hard to write into files: large numbers, and names that need quoting. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readConfig } from '../../../pipeline/config.ts'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { runNightly } from '../../../pipeline/run.ts'
import { SILENT } from './in-process.ts'
import { currentSnapshot, deliver, writeRaw } from './nightly.ts'

export const FIRST_DAY = '2025-12-30'
export const LAST_DAY = '2026-01-06'
export const AS_OF = '2026-01-07T02:00:00Z'
/** Times of the snapshots, with the first day's prompt tokens in each. */
export const NIGHTS = { '2025-12-31T02:00:00Z': 7, '2026-01-01T02:00:00Z': 8, [AS_OF]: 9 }
/** Special characters of TeX, YAML and Markdown. */
export const PUBLISHER = `R&D {Lab} #1_%$ "x"`
export const DATA_FILES = [
  'app-rankings.duckdb',
  'rankings.parquet',
  'rankings.csv',
  ...['app_daily', 'model_daily'].flatMap((table) =>
    ['2025-12', '2026-01'].map((month) => `${table}/month=${month}.parquet`),
  ),
  ...['apps', 'categories', 'coverage', 'restatements', 'meta'].flatMap((table) => [
    `${table}.parquet`,
    `${table}.csv`,
  ]),
]
export const TEXT_FILES = ['README.md', 'LICENSE']

/** Above 2^53 and, in the second app, nearly 2^63. */
const LARGE = '9007199254740993'
export const HUGE = '9023372036854775809'

/** A spreadsheet formula, and characters that CSV and Markdown must quote. */
export const NAMES = [
  '=HYPERLINK("http://example.com")',
  '+1',
  '-2+3',
  '@SUM(A1)',
  '\tTab',
  '\n=1',
  '＝1',
  '＋1',
  '－1',
  '＠1',
  'Comma, "quote"\nand line',
  'Ünïcode 🚀 |',
]

/** Credit lines with the Markdown of a heading, a list and emphasis. */
export const SOURCES = '# Source: somebody, "quoted" | piped\r\n- and *another*\n\n`third`'

export const ADDRESS = 'https://data.example/api/v1/datasets/app-rankings/snapshots/20260107T020000Z'
export const ATTRIBUTION = `Source: ${PUBLISHER}, as of ${AS_OF} (CC-BY-4.0)`

/** Publishes the snapshot, with a first day that was restated twice; returns its folder. */
export async function publishBundle(dataDir: string, sources = SOURCES): Promise<string> {
  const apps = NAMES.map((name, index) =>
    JSON.stringify({
      app_id: index + 1,
      app_name: name,
      visibility: 'public',
      subcategories: index === 0 ? ['cli-agent', 'legal'] : [],
      updated_at: '2025-01-01',
    }),
  )
  writeRaw(dataDir, 'apps/apps.ndjson', apps.join('\n'))
  const rows = NAMES.map((_, index) => `${index + 1},${[LARGE, HUGE][index] ?? 7},1`)
  deliver(dataDir, LAST_DAY, rows)
  deliver(dataDir, addDays(LAST_DAY, -1), ['3,1,0'])
  writeRaw(dataDir, 'ATTRIBUTION', sources)
  const config = readConfig({
    DATA_DIR: dataDir,
    PUBLISHER,
    PUBLIC_URL: 'https://data.example/',
  })
  for (const [asOf, tokens] of Object.entries(NIGHTS)) {
    deliver(dataDir, FIRST_DAY, [`${NAMES.length},${tokens},1`])
    await runNightly({ config, now: () => new Date(asOf), progress: SILENT })
  }
  return currentSnapshot(dataDir)
}

export function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
