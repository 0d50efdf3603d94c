/** CONTRACT.md: every citation of it in code, SQL, comments and tests leads to a section that exists. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { REPOSITORY } from './support/processes.ts'

const read = (name: string) => readFileSync(join(REPOSITORY, name), 'utf8')
const sections = new Set(
  [...read('CONTRACT.md').matchAll(/^#+ (\d+(?:\.\d+)?)\.? /gm)].map(([, number]) => number),
)
const files = globSync('{api,pipeline,test,data}/**/*.{ts,sql,js,md}', { cwd: REPOSITORY })

it('the sections of CONTRACT.md are numbered', () => {
  expect([...sections]).toEqual(expect.arrayContaining(['1', '4.1', '4.6', '10']))
})

it('every citation of the contract leads to a section', () => {
  const cited = files.flatMap((file) =>
    [...read(file).matchAll(/CONTRACT(?:\.md)?,? (?:section )?(\d+(?:\.\d+)?)/g)].map(([, number = '']) => ({
      file,
      number,
    })),
  )
  expect(cited.length).toBeGreaterThan(50)
  expect(cited.filter(({ number }) => !sections.has(number))).toEqual([])
})
