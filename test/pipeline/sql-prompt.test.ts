/** `npm run sql` as a process: one question, statements from stdin, and what it refuses. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatTable } from '../../pipeline/terminal/table-text.ts'
import { runAt } from '../support/in-process.ts'
import { TemporaryFolders, writeRaw } from '../support/nightly.ts'
import { REPOSITORY } from '../support/processes.ts'

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

async function ask(args: readonly string[], input = '', folder = dataDir, environment = {}) {
  const child = spawn(process.execPath, [join(REPOSITORY, 'pipeline', 'sql-prompt.ts'), ...args], {
    env: { ...process.env, ...environment, DATA_DIR: folder },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(input)
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
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
  it('answers one question', async () => {
    expect(await ask(['FROM latest_popular'])).toEqual({ code: 0, stdout: POPULAR, stderr: '' })
  })

  it('answers each statement of stdin', async () => {
    const { stdout } = await ask([], "SELECT 1 AS a;\nFROM popular('2026-01-06', '2026-01-06');")
    expect(stdout).toBe(`a\n-\n1\n(1 row)\n${POPULAR}`)
  })

  it('tells what is wrong with a statement, and never changes the snapshot', async () => {
    const wrong = await ask(['FROM nothing'])
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('Table with name nothing does not exist')
    expect((await ask(['DROP TABLE apps'])).stderr).toContain('read-only')
  })

  it.each(['', ' ; ', '; -- nothing', '/* nothing */;', '/**/ -- a\n;/* ; **/'])(
    'says that %j is no statement',
    async (sql) => {
      expect(await ask([sql])).toEqual({
        code: 2,
        stdout: '',
        stderr: 'There is no statement to run. See --help\n',
      })
    },
  )

  it('answers below comments of any length', async () => {
    const comments = `${'-'.repeat(200)}\n${'/* * */ /***/'.repeat(100)}\n-- ${'; '.repeat(100)}\n`
    const { stdout } = await ask([], `${comments}SELECT 1 AS a;`)
    expect(stdout).toBe('a\n-\n1\n(1 row)\n')
  })

  it('shows times in UTC, wherever the machine stands', async () => {
    const { stdout } = await ask(['SELECT as_of FROM meta'], '', dataDir, { TZ: 'America/St_Johns' })
    expect(stdout).toContain('2026-01-07 02:00:00+00')
  })

  it('says what to do where nothing is published yet', async () => {
    const { code, stderr } = await ask(['SELECT 1'], '', folders.make())
    expect(code).toBe(2)
    expect(stderr).toBe('Nothing is published yet: npm run nightly makes a snapshot\n')
  })
})

describe('formatTable', () => {
  it('takes more rows than a function takes arguments', () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => [index])
    expect(formatTable(['n'], rows)).toMatch(/199999\n\(200000 rows\)$/)
  })

  it('keeps a cell on its line, and from what a terminal would obey', () => {
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
