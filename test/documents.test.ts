/** The READMEs list every setting with its default, and their links work. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { SETTINGS } from '../api/config.ts'
import { PIPELINE_SETTINGS } from '../pipeline/config.ts'

const REPOSITORY = join(import.meta.dirname, '..')
const read = (name: string) => readFileSync(join(REPOSITORY, name), 'utf8')
const readme = read('README.md')
const operators = read('data/deploy/README.md')
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
  const path = join(REPOSITORY, name)
  const links = [...readFileSync(path, 'utf8').matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)]
  for (const [link, target = '', anchor] of links) {
    const file = target === '' ? path : join(dirname(path), target)
    expect(existsSync(file), link).toBe(true)
    if (anchor !== undefined) expect(anchorsOf(readFileSync(file, 'utf8')), link).toContain(anchor)
  }
})
