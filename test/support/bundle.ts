/** A snapshot with all that is hard to write into files: large numbers, and names that CSV and Markdown must quote. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readConfig } from '../../pipeline/config.ts'
import { runNightly } from '../../pipeline/run.ts'
import { SILENT } from './in-process.ts'
import { currentSnapshot, writeRaw } from './nightly.ts'

export const AS_OF = '2026-01-07T02:00:00Z'
export const DATA_FILES = [
  'app-rankings.duckdb',
  'rankings.parquet',
  'rankings.csv',
  'app_daily.parquet',
  'apps.parquet',
  'apps.csv',
  'coverage.csv',
  'restatements.csv',
]
export const TEXT_FILES = ['datapackage.json', 'croissant.json', 'CITATION.cff', 'README.md', 'LICENSE']

/** More than 2^53 and, in the second app, more than 2^63. */
const LARGE = '9007199254740993'
export const HUGE = '9223372036854775809'

/** What a spreadsheet would run, and what CSV and Markdown have to quote. */
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

/** Credit lines that would be a heading, a list and emphasis in Markdown. */
export const SOURCES = '# Source: somebody, "quoted" | piped\r\n- and *another*\n\n`third`'

/** Publishes the snapshot; gives its folder. */
export async function publishBundle(dataDir: string): Promise<string> {
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
  const rows = NAMES.map((_, index) => `2026-01-06T12:00:00Z,${index + 1},${[LARGE, HUGE][index] ?? 7},1`)
  writeRaw(
    dataDir,
    'usage/date=2026-01-06/rows.csv',
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
  writeRaw(dataDir, 'ATTRIBUTION', SOURCES)
  const config = readConfig({
    DATA_DIR: dataDir,
    PUBLISHER: 'R&D {Lab}',
    PUBLIC_URL: 'https://data.example/',
  })
  await runNightly(config, { now: () => new Date(AS_OF), progress: SILENT })
  return currentSnapshot(dataDir)
}

/** The checksum of a file. */
export function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
