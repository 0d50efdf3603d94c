/**
 * The documents fit the project: every citation of the contract leads to a section with its tests, the READMEs list every
 * setting with its default, and their links work.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { SETTINGS } from '../api/config.ts'
import { PIPELINE_SETTINGS } from '../pipeline/config.ts'
import { REPOSITORY, textOf } from './support/processes.ts'

const readme = textOf('README.md')
const operators = textOf('data/deploy/README.md')
const readBy = [
  { reader: 'API', shape: SETTINGS },
  { reader: 'run', shape: PIPELINE_SETTINGS },
]
const settings = readBy.flatMap(({ reader, shape }) =>
  Object.entries(shape).map(([name, schema]) => ({ reader, name, schema })),
)

it.each(settings)(
  'the table of settings has $name of the $reader with its default',
  ({ reader, name, schema }) => {
    const parsed: unknown = schema.parse(undefined)
    const rows = operators.split('\n').filter((line) => line.startsWith(`| \`${name}\``))
    const [, , standard, by] = rows
      .join()
      .split('|')
      .map((cell) => cell.trim())
    expect(rows).toHaveLength(1)
    expect([reader, 'both']).toContain(by)
    expect(standard).toBe(
      parsed === undefined ? 'not set' : `\`${z.union([z.string(), z.number()]).parse(parsed)}\``,
    )
  },
)

it('every setting in the table exists', () => {
  const listed = [...operators.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => String(name))
  expect(listed.toSorted()).toEqual([...new Set(settings.map(({ name }) => name))].toSorted())
})

it('README.md has at most 120 lines', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(121)
})

it('every file and folder in the map of the code exists', () => {
  const [, map = ''] = readme.split('## A map of the code')
  const paths = [...map.matchAll(/`((?:api|pipeline)\/[^`]+)`/g)].map(([, path]) => String(path))
  expect(paths.filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([])
})

const READMES = globSync('{*,{api,data,pipeline,test}/**/*}.md', { cwd: REPOSITORY })

/** The link anchors of a Markdown file's headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

it.each(READMES)('every link of %s has a target', (name) => {
  const links = textOf(name).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)
  for (const [link, target = '', anchor] of links) {
    const file = target === '' ? name : join(dirname(name), target)
    expect(existsSync(join(REPOSITORY, file)), link).toBe(true)
    if (anchor !== undefined) expect(anchorsOf(textOf(file)), link).toContain(anchor)
  }
})

const headings = textOf('CONTRACT.md').matchAll(/^#+ (\d+(?:\.\d+)?)\.? /gm)
const sections = new Set(headings.map(([, number = '']) => number))

/** The sections that a text cites, also several at once: `CONTRACT 3 and 4.6`. */
function citedIn(text: string): string[] {
  const lists = text.matchAll(
    /CONTRACT(?:\.md)?,? (?:section )?(\d+(?:\.\d+)?(?:(?:, | and )\d+(?:\.\d+)?)*)/g,
  )
  return [...lists].flatMap(([, list = '']) => list.split(/, | and /))
}

const files = globSync('{api,pipeline,test,data}/**/*.{ts,sql,js,md}', { cwd: REPOSITORY })

it('every citation of the contract leads to a section', () => {
  const cited = files.flatMap((file) => citedIn(textOf(file)).map((number) => ({ file, number })))
  expect(cited.length).toBeGreaterThan(50)
  expect(cited.filter(({ number }) => !sections.has(number))).toEqual([])
})

/** The sections that the first comment of a test file names; none for tests of structure, documents and tools. */
function sectionsOf(file: string): string[] {
  const [, list = ''] = /^\/\*\*(?:\n \*)? (CONTRACT [^:]*): /.exec(textOf(file)) ?? []
  return citedIn(list)
}

const testFiles = globSync('test/**/*.test.ts', { cwd: REPOSITORY }).toSorted()
const WITHOUT_PROMISE = ['deploy', 'documents', 'pipeline/sql', 'walls'].map((name) => `test/${name}.test.ts`)

it('the first comment of each test file begins with the sections that it proves', () => {
  const silent = testFiles.filter((file) => sectionsOf(file).length === 0)
  expect(silent).toEqual(WITHOUT_PROMISE)
})

// Sections with parts are proved by their parts.
const proved = [...sections].filter((section) => !sections.has(`${section}.1`))
const ofTests = textOf('test/README.md')

it('test/README.md says what proves each section', () => {
  expect([...ofTests.matchAll(/^\| (\d+(?:\.\d+)?) /gm)].map(([, section]) => section)).toEqual(proved)
})

it.each(proved)('the command of test/README.md lists the tests of section %s, at least one', (section) => {
  const [command = ''] = /^grep .*$/m.exec(ofTests) ?? []
  const ofSection = command.replace('4.5', section)
  const { stdout } = spawnSync('sh', ['-c', ofSection], { cwd: REPOSITORY, encoding: 'utf8' })
  const listed = stdout.split('\n').filter((line) => line !== '')
  expect(listed.toSorted()).toEqual(testFiles.filter((file) => sectionsOf(file).includes(section)))
  expect(listed).not.toEqual([])
})
