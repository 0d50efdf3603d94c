/** The folder walls stand: each forbidden import, planted, fails the linter. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { TemporaryFolders } from './support/pipeline/nightly.ts'
import { REPOSITORY } from './support/processes.ts'

/** Files that import `one` from another, and what the linter says of each. */
const FORBIDDEN = [
  [
    'the pipeline may not import the API',
    'pipeline/a.ts',
    '../api/one.ts',
    'The pipeline knows nothing of api/',
  ],
  [
    'the pipeline may not import the tests',
    'pipeline/b.ts',
    '../test/one.ts',
    'knows nothing of api/ or test/',
  ],
  [
    'the API may not import the pipeline',
    'api/c/c.ts',
    '../../pipeline/one.ts',
    'api/ may import one folder',
  ],
  ['the API may not import the tests', 'api/d.ts', '../test/one.ts', 'Nothing imports test/'],
  [
    'the contract may not import the pipeline',
    'pipeline/contract/e.ts',
    '../one.ts',
    'nothing but its own files',
  ],
  ['no import may lead in a circle', 'api/f.ts', './one.ts', 'import(no-cycle)'],
] as const
const ALLOWED = ['api/c/allowed.ts', '../../pipeline/contract/one.ts'] as const

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const reportSchema = z.object({
  diagnostics: z.array(z.object({ filename: z.string(), code: z.string(), help: z.string().optional() })),
})
let diagnostics: z.infer<typeof reportSchema>['diagnostics'] = []

/** What the linter says of a file. */
const told = (name: string) =>
  diagnostics.filter(({ filename }) => filename === name).map(({ code, help }) => `${code} ${help}`)

beforeAll(() => {
  const folder = folders.make()
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  cpSync(join(REPOSITORY, '.oxlintrc.json'), join(folder, '.oxlintrc.json'))
  for (const name of ['pipeline', 'pipeline/contract', 'test'])
    write(`${name}/one.ts`, 'export const one = 1\n')
  write('api/one.ts', "import { two } from './f.ts'\nexport const one = two\n")
  const imports = [...FORBIDDEN.map(([, name, target]) => [name, target] as const), ALLOWED]
  for (const [name, target] of imports)
    write(name, `import { one } from '${target}'\nexport const two = one + 1\n`)
  const oxlint = join(REPOSITORY, 'node_modules', '.bin', 'oxlint')
  const { stdout } = spawnSync(oxlint, ['--format=json'], { cwd: folder, encoding: 'utf8' })
  diagnostics = reportSchema.parse(JSON.parse(stdout)).diagnostics
})

it.each(FORBIDDEN)('%s', (_wall, name, _target, message) =>
  expect(told(name)).toEqual([expect.stringContaining(message)]),
)

it('the API may import the contract of the pipeline', () => expect(told(ALLOWED[0])).toEqual([]))
