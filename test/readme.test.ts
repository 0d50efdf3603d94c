/** The README lists every setting with its default and every command, and no README leads to nothing. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { SETTINGS } from '../api/config.ts'
import { pipelineSettings } from '../pipeline/config.ts'

const REPOSITORY = join(import.meta.dirname, '..')
const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8')
const packageFile = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')))

const settings = { ...SETTINGS, ...pipelineSettings.shape }

it.each(Object.entries(settings))('lists the setting %s with its default', (name, schema) => {
  const parsed: unknown = schema.parse(undefined)
  const row = readme.split('\n').find((line) => line.startsWith(`| \`${name}\``))
  expect(row).toContain(
    parsed === undefined ? '| not set' : `| \`${z.union([z.string(), z.number()]).parse(parsed)}\``,
  )
})

it('lists no setting that does not exist', () => {
  const section = readme.slice(readme.indexOf('## Settings'), readme.indexOf('## The API'))
  const listed = [...section.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => String(name))
  expect(listed.toSorted()).toEqual(Object.keys(settings).toSorted())
})

it.each(Object.keys(packageFile.scripts))('lists the command %s', (name) => {
  const section = readme.slice(readme.indexOf('## Commands'), readme.indexOf('## Settings'))
  const command = ['start', 'test'].includes(name) ? `npm ${name}` : name
  expect(section).toMatch(new RegExp(`\\b${command}\\b`))
})

const READMES = globSync('{*,{api,data,pipeline,test}/**/*}.md', { cwd: REPOSITORY })

/** The anchors of the headings of a Markdown file, as they are made for links. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

it.each(READMES)('each link of %s leads somewhere', (name) => {
  const path = join(REPOSITORY, name)
  const links = [...readFileSync(path, 'utf8').matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)]
  for (const [link, target = '', anchor] of links) {
    const file = target === '' ? path : join(dirname(path), target)
    expect(existsSync(file), link).toBe(true)
    if (anchor !== undefined) expect(anchorsOf(readFileSync(file, 'utf8')), link).toContain(anchor)
  }
})
