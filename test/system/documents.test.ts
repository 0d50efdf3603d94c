/** CONTRACT 9: the blocks of README.md, data/README.md and pipeline/README.md, run as a reader would. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeFolder } from '../support/folders.ts'
import { currentSnapshot, deliver, publish, queryCurrent, withDatabase } from '../support/pipeline/nightly.ts'
import { hasFolder } from '../support/programs.ts'
import { textOf } from '../support/processes.ts'

/** The first code block of a document in a language that contains a text. */
function block(name: string, language: string, contained = ''): string {
  const blocks = [...textOf(name).matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))]
  return String(blocks.map(([, code]) => code).find((code) => code?.includes(contained)))
}

/** DATA_DIR of a reader who typed "Your own data" of README.md, and published it. */
async function publishOwnData(): Promise<string> {
  const folder = makeFolder()
  const [typed = ''] = block('README.md', 'sh', 'DATA_DIR=mydata').split('DATA_DIR=mydata npm start')
  execFileSync('sh', ['-e', '-c', typed], { cwd: folder })
  const dataDir = join(folder, 'mydata')
  await publish(dataDir, '2026-11-19T02:00:00Z')
  return dataDir
}

/** What Python prints for the code, in the folder of the published files. */
function python(dataDir: string, code: string): string {
  const program = join(String(process.env['PYTHON_READERS']), 'bin', 'python')
  return execFileSync(program, ['-c', code], { cwd: currentSnapshot(dataDir), encoding: 'utf8' })
}

it('"Your own data" of README.md publishes the app with its tokens', async () => {
  const dataDir = await publishOwnData()
  expect(await queryCurrent(dataDir, 'SELECT app_name, total_tokens FROM latest_popular')).toEqual([
    { app_name: 'My Agent', total_tokens: '1500' },
  ])
})

it.runIf(hasFolder('PYTHON_READERS'))('the Python of the documents reads the rankings', async () => {
  const dataDir = await publishOwnData()
  const code = block('README.md', 'python').trim()
  expect(python(dataDir, code.replace(/ranks\.sql.*/, 'print($&.to_dicts())'))).toMatch(
    /'app_name': 'My Agent'.*'total_tokens': 1500/,
  )
  const pandas = block('data/README.md', 'python').trim()
  expect(python(dataDir, `import pandas\nprint(${pandas}.total_tokens.tolist())`)).toContain('1500')
})

it('the query of pipeline/README.md shows what a second snapshot changed', async () => {
  const dataDir = await publishOwnData()
  const first = currentSnapshot(dataDir)
  deliver(dataDir, '2026-11-18', ['1,500,0'], 'late.csv')
  await publish(dataDir, '2026-11-20T02:00:00Z')
  const sql = block('pipeline/README.md', 'sql', 'ATTACH')
    .replace(/'data\/snapshots\/\w+/, `'${first}`)
    .replace(/'data\/snapshots\/\w+/, `'${currentSnapshot(dataDir)}`)
  const rows = withDatabase(async (connection) => (await connection.runAndReadAll(sql)).getRowObjectsJson())
  expect(await rows).toEqual([{ day: '2026-11-18', before: '1500', after: '2000' }])
})
