/** CONTRACT.md: every citation of it in code, SQL, comments and tests leads to a section that exists. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { REPOSITORY } from './support/processes.ts'

const read = (name: string) => readFileSync(join(REPOSITORY, name), 'utf8')
const sections = new Set(
  [...read('CONTRACT.md').matchAll(/^#+ (\d+(?:\.\d+)?)\.? /gm)].map(([, number]) => number),
)

/** The sections that a text cites, also several at once: `CONTRACT 3 and 4.6`. */
function citedIn(text: string): string[] {
  const lists = text.matchAll(
    /CONTRACT(?:\.md)?,? (?:section )?(\d+(?:\.\d+)?(?:(?:, | and )\d+(?:\.\d+)?)*)/g,
  )
  return [...lists].flatMap(([, list = '']) => list.split(/, | and /))
}

const files = globSync('{api,pipeline,test,data}/**/*.{ts,sql,js,md}', { cwd: REPOSITORY })

it('the sections of CONTRACT.md are numbered', () => {
  expect([...sections]).toEqual(expect.arrayContaining(['1', '4.1', '4.6', '10']))
})

it('every citation of the contract leads to a section', () => {
  const cited = files.flatMap((file) => citedIn(read(file)).map((number) => ({ file, number })))
  expect(cited.length).toBeGreaterThan(50)
  expect(cited.filter(({ number }) => !sections.has(number))).toEqual([])
})

/** The sections that the first comment of a test file names; none for tests of structure, documents and tools. */
function sectionsOf(file: string): string[] {
  const [, list = ''] = /^\/\*\*(?:\n \*)? (CONTRACT [^:]*): /.exec(read(file)) ?? []
  return citedIn(list)
}

const testFiles = globSync('test/**/*.test.ts', { cwd: REPOSITORY }).toSorted()
const WITHOUT_PROMISE = ['contract', 'deploy', 'documents', 'pipeline/sql', 'walls'].map(
  (name) => `test/${name}.test.ts`,
)

it('the first comment of each test file begins with the sections that it proves', () => {
  const silent = testFiles.filter((file) => sectionsOf(file).length === 0)
  expect(silent).toEqual(WITHOUT_PROMISE)
})

// Sections with parts are proved by their parts.
const proved = [...sections].map(String).filter((section) => !sections.has(`${section}.1`))
const readme = read('test/README.md')

it('test/README.md says what proves each section', () => {
  expect([...readme.matchAll(/^\| (\d+(?:\.\d+)?) /gm)].map(([, section]) => section)).toEqual(proved)
})

it.each(proved)('the command of test/README.md lists the tests of section %s, at least one', (section) => {
  const [command = ''] = /^grep .*$/m.exec(readme) ?? []
  const ofSection = command.replace('4.5', section)
  const { stdout } = spawnSync('sh', ['-c', ofSection], { cwd: REPOSITORY, encoding: 'utf8' })
  const listed = stdout.split('\n').filter((line) => line !== '')
  expect(listed.toSorted()).toEqual(testFiles.filter((file) => sectionsOf(file).includes(section)))
  expect(listed).not.toEqual([])
})
