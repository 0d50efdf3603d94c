/** The README lists every setting with its default and every command. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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
