/** The READMEs list every setting with its default and every command, and their links work. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { SETTINGS } from '../api/config.ts'
import { pipelineSettings } from '../pipeline/config.ts'

const REPOSITORY = join(import.meta.dirname, '..')
const read = (name: string) => readFileSync(join(REPOSITORY, name), 'utf8')
const readme = read('README.md')
/** Pages with tables of settings and commands. */
const pages = ['README.md', 'api/README.md', 'pipeline/README.md', 'test/README.md'].map(read)
const packageFile = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(read('package.json')))

const settings = [
  { page: 'api/README.md', shape: SETTINGS },
  { page: 'pipeline/README.md', shape: pipelineSettings.shape },
].flatMap(({ page, shape }) => Object.entries(shape).map(([name, schema]) => ({ page, name, schema })))

it.each(settings)('$page lists the setting $name with its default', ({ page, name, schema }) => {
  const parsed: unknown = schema.parse(undefined)
  const row = read(page)
    .split('\n')
    .find((line) => line.startsWith(`| \`${name}\``))
  expect(row?.split('|')[2]?.trim()).toBe(
    parsed === undefined ? 'not set' : `\`${z.union([z.string(), z.number()]).parse(parsed)}\``,
  )
})

it.each(['api/README.md', 'pipeline/README.md'])('every setting listed in %s exists', (page) => {
  const listed = [...read(page).matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => String(name))
  const known = settings.filter((setting) => setting.page === page).map(({ name }) => name)
  expect(listed.toSorted()).toEqual(known.toSorted())
})

it.each(Object.keys(packageFile.scripts))('a README lists the command %s', (name) => {
  const command = ['start', 'test'].includes(name) ? `npm ${name}` : name
  expect(pages.join('\n')).toMatch(new RegExp(`\\b${command}\\b`))
})

it('README.md has at most 130 lines', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(131)
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
