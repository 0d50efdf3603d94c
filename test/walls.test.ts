/** The walls between folders hold: the linter reports every planted forbidden import. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { makeFolder } from './support/folders.ts'
import { REPOSITORY } from './support/processes.ts'

/** Files with an import, and the linter's message for each. */
const FORBIDDEN = [
  ['pipeline/a.ts', '../api/one.ts', 'The pipeline knows nothing of api/'],
  ['pipeline/b.ts', '../test/one.ts', 'knows nothing of api/ or test/'],
  ['api/c/c.ts', '../../pipeline/one.ts', 'api/ may import two folders'],
  ['api/d.ts', '../test/one.ts', 'Nothing imports test/'],
  ['pipeline/contract/e.ts', '../one.ts', 'import nothing but their own files'],
  // A circle.
  ['api/f.ts', './one.ts', 'import(no-cycle)'],
] as const
const ALLOWED = [
  ['api/c/contract.ts', '../../pipeline/contract/one.ts'],
  ['api/c/program.ts', '../../pipeline/program/one.ts'],
] as const

const reportSchema = z.object({
  diagnostics: z.array(z.object({ filename: z.string(), code: z.string(), help: z.string().optional() })),
})
let diagnostics: z.infer<typeof reportSchema>['diagnostics'] = []

/** The linter's messages for a file. */
const messagesFor = (name: string) =>
  diagnostics.filter(({ filename }) => filename === name).map(({ code, help }) => `${code} ${help}`)

beforeAll(() => {
  const folder = makeFolder()
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  cpSync(join(REPOSITORY, '.oxlintrc.json'), join(folder, '.oxlintrc.json'))
  for (const name of ['pipeline', 'pipeline/contract', 'pipeline/program', 'test'])
    write(`${name}/one.ts`, 'export const one = 1\n')
  write('api/one.ts', "import { two } from './f.ts'\nexport const one = two\n")
  for (const [name, target] of [...FORBIDDEN, ...ALLOWED])
    write(name, `import { one } from '${target}'\nexport const two = one + 1\n`)
  const oxlint = join(REPOSITORY, 'node_modules', '.bin', 'oxlint')
  const { stdout } = spawnSync(oxlint, ['--format=json'], { cwd: folder, encoding: 'utf8' })
  diagnostics = reportSchema.parse(JSON.parse(stdout)).diagnostics
})

it.each(FORBIDDEN)('the linter rejects in %s the import of %s: %s', (name, _target, message) =>
  expect(messagesFor(name)).toEqual([expect.stringContaining(message)]),
)

it.each(ALLOWED)('the linter accepts in %s the import of %s', (name) => expect(messagesFor(name)).toEqual([]))
