/** `npm run sql`: one query, statements from stdin, and rejected statements. */
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sqlPrompt } from '../../pipeline/sql-prompt.ts'
import { formatTable } from '../../pipeline/terminal/table-text.ts'
import { runAt } from '../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../support/pipeline/nightly.ts'
import { runCommandLine } from '../support/processes.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()
afterAll(() => folders.removeAll())

beforeAll(async () => {
  writeRaw(
    dataDir,
    'apps/registry.csv',
    'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n2,Two,public,2025-01-01\n',
  )
  const rows = '2026-01-06,1,5,1\n2026-01-06,2,7,0\n'
  writeRaw(dataDir, 'usage/date=2026-01-06/rows.csv', `ts,app_id,prompt_tokens,completion_tokens\n${rows}`)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
})

async function ask(args: readonly string[], input = '', folder = dataDir) {
  return await runCommandLine((line) => sqlPrompt(line, Readable.from([input])), args, { DATA_DIR: folder })
}

const POPULAR = [
  'rank  app_id  app_name  total_requests  total_tokens',
  '----  ------  --------  --------------  ------------',
  '   1       2  Two                    1             7',
  '   2       1  One                    1             6',
  '(2 rows)',
  '',
].join('\n')

describe('npm run sql', () => {
  it('runs one query', async () => {
    expect(await ask(['FROM latest_popular'])).toMatchObject({ code: 0, stdout: POPULAR, stderr: '' })
  })

  it('runs each statement of stdin', async () => {
    const { stdout } = await ask([], "SELECT 1 AS a;\nFROM popular('2026-01-06', '2026-01-06');")
    expect(stdout).toBe(`a\n-\n1\n(1 row)\n${POPULAR}`)
  })

  it('prints the error of a statement, and never changes the snapshot', async () => {
    const wrong = await ask(['FROM nothing'])
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('Table with name nothing does not exist')
    expect((await ask(['DROP TABLE apps'])).stderr).toContain('read-only')
  })

  it.each(['', ' ; ', '; -- nothing', '/* nothing */;', '/**/ -- a\n;/* ; **/'])(
    'reports that %j has no statement',
    async (sql) => {
      expect(await ask([sql])).toMatchObject({
        code: 2,
        stdout: '',
        stderr: 'There is no statement to run. See --help\n',
      })
    },
  )

  it('runs a query after comments of any length', async () => {
    const comments = `${'-'.repeat(200)}\n${'/* * */ /***/'.repeat(100)}\n-- ${'; '.repeat(100)}\n`
    const { stdout } = await ask([], `${comments}SELECT 1 AS a;`)
    expect(stdout).toBe('a\n-\n1\n(1 row)\n')
  })

  it('shows times in UTC, whatever the time zone of the machine', async () => {
    const { stdout } = await ask(['SELECT as_of FROM meta'])
    expect(stdout).toContain('2026-01-07 02:00:00+00')
  })

  it('names the remedy if nothing is published yet', async () => {
    const { code, stderr } = await ask(['SELECT 1'], '', folders.make())
    expect(code).toBe(2)
    expect(stderr).toBe('Nothing is published yet: npm run nightly makes a snapshot\n')
  })
})

describe('formatTable', () => {
  it('accepts more rows than a function accepts arguments', () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => [index])
    expect(formatTable(['n'], rows)).toMatch(/199999\n\(200000 rows\)$/)
  })

  it('keeps a cell on its line, without terminal control characters', () => {
    expect(
      formatTable(
        ['name', 'list'],
        [
          ['a\nb\u001B\u009B', ['x']],
          [null, []],
        ],
      ),
    ).toBe('name   list\n-----  -----\na b    ["x"]\n       []\n(2 rows)')
  })
})

describe('npm run sql -- --safe', () => {
  it('runs queries as without --safe', async () => {
    expect(await ask(['--safe', 'FROM latest_popular'])).toMatchObject({ code: 0, stdout: POPULAR })
  })

  it.each([
    "COPY apps TO 'apps.csv'",
    "ATTACH 'other.duckdb'",
    "FROM read_csv('/etc/passwd')",
    "FROM read_text('package.json')",
    "FROM 'package.json'",
    "FROM glob('*')",
    'INSTALL httpfs',
    'LOAD httpfs',
    'SET enable_external_access = true',
    'RESET enable_external_access',
    "SET temp_directory = '/tmp'",
    "EXPORT DATABASE 'folder'",
  ])('refuses %s', async (sql) => {
    const { code, stdout, stderr } = await ask(['--safe', sql])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/disabled|locked|[Cc]annot access/)
  })
})
