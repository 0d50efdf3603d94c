/** The folder walls stand: each forbidden import, planted, fails the linter. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'

const REPOSITORY = join(import.meta.dirname, '..')
const OXLINT = join(REPOSITORY, 'node_modules', '.bin', 'oxlint')

let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'walls-test-'))
  cpSync(join(REPOSITORY, '.oxlintrc.json'), join(folder, '.oxlintrc.json'))
})

afterAll(() => rmSync(folder, { recursive: true }))

function lint(files: Readonly<Record<string, string>>): string {
  for (const name of ['pipeline', 'api', 'test']) rmSync(join(folder, name), { recursive: true, force: true })
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return spawnSync(OXLINT, ['--deny-warnings'], { cwd: folder, encoding: 'utf8' }).stdout
}

const ONE = 'export const one = 1\n'

it('the pipeline may not import the API', () => {
  const text = "import { one } from '../api/one.ts'\nexport const two = one + 1\n"
  expect(lint({ 'api/one.ts': ONE, 'pipeline/two.ts': text })).toContain('The pipeline knows nothing of api/')
})

it('the API may import the contract of the pipeline and nothing else of it', () => {
  const of = (name: string) => `import { one } from '../../pipeline/${name}.ts'\nexport const two = one + 1\n`
  const files = { 'pipeline/contract/calendar.ts': ONE, 'pipeline/run.ts': ONE }
  expect(lint({ ...files, 'api/datasets/two.ts': of('run') })).toContain(
    'api/ may import one folder of the pipeline',
  )
  expect(lint({ ...files, 'api/datasets/two.ts': of('contract/calendar') })).toContain(
    'Found 0 warnings and 0 errors',
  )
})

it('the contract imports nothing but its own files', () => {
  const text = "import { one } from '../one.ts'\nexport const two = one + 1\n"
  expect(lint({ 'pipeline/one.ts': ONE, 'pipeline/contract/calendar.ts': text })).toContain(
    'The contract imports nothing but its own files',
  )
})

it('nothing imports the tests', () => {
  const text = "import { one } from '../test/one.ts'\nexport const two = one + 1\n"
  expect(lint({ 'test/one.ts': ONE, 'api/two.ts': text })).toContain('Nothing imports test/')
})

it('there are no cycles', () => {
  const text = (other: string) =>
    `import { ${other} } from './${other}.ts'\nexport const x${other} = ${other}\n`
  expect(lint({ 'pipeline/a.ts': text('b'), 'pipeline/b.ts': text('a') })).toContain('no-cycle')
})
