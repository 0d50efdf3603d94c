/** CONTRACT 8, an analyst's first query: `npm run sql` prints the rows of the newest snapshot. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { formatTable } from '../../pipeline/terminal/table-text.ts'
import { runAt } from '../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../support/pipeline/nightly.ts'
import { REPOSITORY, startProcess } from '../support/processes.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()
afterAll(() => folders.removeAll())

beforeAll(async () => {
  const registry = 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n2,Two,public,2025-01-01\n'
  writeRaw(dataDir, 'apps/registry.csv', registry)
  const rows = '2026-01-06,1,5,1\n2026-01-06,2,7,0\n'
  writeRaw(dataDir, 'usage/date=2026-01-06/rows.csv', `ts,app_id,prompt_tokens,completion_tokens\n${rows}`)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
})

function ask(args: readonly string[], folder = dataDir) {
  const environment = { DATA_DIR: folder, TZ: 'Asia/Tokyo' }
  const program = join(REPOSITORY, 'pipeline', 'sql-prompt.ts')
  return startProcess(process.execPath, [program, ...args], { environment }).ended
}

const POPULAR = [
  'rank  app_id  app_name  total_requests  total_tokens',
  '----  ------  --------  --------------  ------------',
  '   1       2  Two                    1             7',
  '   2       1  One                    1             6',
  '(2 rows)',
  '',
].join('\n')

it('npm run sql runs one query, with times in UTC whatever the time zone of the machine', async () => {
  expect(await ask(['FROM latest_popular'])).toMatchObject({ code: 0, stdout: POPULAR, stderr: '' })
  expect((await ask(['SELECT as_of FROM meta'])).stdout).toContain('2026-01-07 02:00:00+00')
})

it.each([
  [['FROM nothing'], 'Table with name nothing does not exist'],
  [['DROP TABLE apps'], 'read-only'],
  [[], 'sql takes one query'],
])('npm run sql ends %j with 2, and never changes the snapshot', async (args, message) => {
  expect(await ask(args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) })
})

it('npm run sql names the remedy if nothing is published yet', async () => {
  const stderr = 'Nothing is published yet: npm run nightly makes a snapshot\n'
  expect(await ask(['SELECT 1'], folders.make())).toMatchObject({ code: 2, stderr })
})

it('a table keeps a cell on its line, without terminal control characters', () => {
  const rows = [
    ['a\nb\u001B\u009B', ['x']],
    [null, []],
  ]
  expect(formatTable(['name', 'list'], rows)).toBe(
    'name   list\n-----  -----\na b    ["x"]\n       []\n(2 rows)',
  )
})
