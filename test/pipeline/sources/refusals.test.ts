/** CONTRACT 7: rejected input: the run ends with 1 and names the fault, and the old snapshot stays. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  currentSnapshot,
  publish,
  runNightly,
  TemporaryFolders,
  writeRaw,
} from '../../support/pipeline/nightly.ts'

const APPS_HEADER = 'app_id,app_name,visibility,subcategories,alias_of,updated_at'
const USAGE_HEADER = 'ts,app_id,prompt_tokens,completion_tokens'

interface Refusal {
  readonly fault: string
  /** Path below raw/. */
  readonly file: string
  readonly lines: readonly string[]
  /** Parts of the message. */
  readonly named: readonly string[]
}

const REFUSALS: readonly Refusal[] = [
  {
    fault: 'a cycle of aliases',
    file: 'apps/new.csv',
    lines: [APPS_HEADER, app({ id: 21, alias: 22 }), app({ id: 22, alias: 23 }), app({ id: 23, alias: 21 })],
    named: ['21', '22', '23'],
  },
  {
    fault: 'an alias of itself',
    file: 'apps/new.csv',
    lines: [APPS_HEADER, app({ id: 24, alias: 24 })],
    named: ['24'],
  },
  {
    fault: 'an alias of an unknown app',
    file: 'apps/new.csv',
    lines: [APPS_HEADER, app({ id: 25, alias: 4711 })],
    named: ['25', '4711'],
  },
  {
    fault: 'an unknown visibility',
    file: 'apps/new.csv',
    lines: [APPS_HEADER, app({ id: 26 }), app({ id: 27, visibility: 'secret' })],
    named: ['apps/new.csv', 'row 3', 'secret'],
  },
  {
    fault: 'an unknown subcategory',
    file: 'apps/new.csv',
    lines: [APPS_HEADER, app({ id: 28, subcategories: 'game|cli-agnet' })],
    named: ['apps/new.csv', 'row 2', 'cli-agnet'],
  },
  {
    fault: 'a registry without a column',
    file: 'apps/new.csv',
    lines: ['app_id,app_name', '29,Nameless'],
    named: ['apps/new.csv', 'visibility'],
  },
  {
    fault: 'a line with terminal control characters',
    file: 'usage/date=2025-01-02/new.csv',
    lines: [USAGE_HEADER, '\u001B[2J'],
    named: ['broken line', 'first at row 2: \uFFFD[2J\n'],
  },
  {
    fault: 'a file beside the folders of the days',
    file: 'usage/new.csv',
    lines: [USAGE_HEADER],
    named: ['usage/new.csv'],
  },
]

const folders = new TemporaryFolders()
const dataDir = folders.make()

beforeAll(async () => {
  writeRaw(dataDir, 'apps/registry.csv', text([APPS_HEADER, app({ id: 1 })]))
  writeRaw(dataDir, 'usage/date=2025-01-01/rows.csv', text([USAGE_HEADER, '2025-01-01T01:00:00Z,1,1,1']))
  await publish(dataDir, '2025-01-05T02:00:00Z')
})

afterAll(() => folders.removeAll())

it.each(REFUSALS)('$fault', async ({ file, lines, named }) => {
  const before = currentSnapshot(dataDir)
  writeRaw(dataDir, file, text(lines))
  const run = await runNightly(dataDir, '--as-of', '2025-01-05T03:00:00Z')
  withdraw(file)
  for (const part of named) expect(run.stderr).toContain(part)
  expect(run.stderr).not.toMatch(/^\s+at /m)
  expect(run.code).toBe(1)
  expect(currentSnapshot(dataDir)).toBe(before)
})

it.each([
  ['an unknown option', ['--as-off', '2025-01-05T02:00:00Z'], '--as-off'],
  ['an invalid time', ['--as-of', 'yesterday'], 'yesterday'],
  ['an extra argument', ['weekly'], 'weekly'],
])('wrong usage, %s, ends with 2 and names it', async (_fault, options, named) => {
  const run = await runNightly(dataDir, ...options)
  expect(run.stderr).toContain(named)
  expect(run.stderr).not.toMatch(/^\s+at /m)
  expect(run.code).toBe(2)
})

/** Removes a raw file, and the folder of a usage file. */
function withdraw(file: string): void {
  rmSync(join(dataDir, 'raw', file.replace(/^(usage\/date=[^/]+).*/, '$1')), { recursive: true })
}

interface AppRow {
  readonly id: number
  readonly visibility?: string
  readonly subcategories?: string
  readonly alias?: number
}

function app({ id, visibility = 'public', subcategories = '', alias }: AppRow): string {
  return `${id},App ${id},${visibility},${subcategories},${alias ?? ''},2025-01-01T00:00:00Z`
}

function text(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}
