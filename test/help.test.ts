/** CONTRACT 9: every program of package.json explains itself, and the documents name only commands and options that exist. */
import { globSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { TemporaryFolders } from './support/pipeline/nightly.ts'
import { REPOSITORY, startProcess } from './support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')))
const fileOf = (script: string) => /node (\S+\.ts)$/.exec(scripts[script] ?? '')?.[1]
const programs = Object.keys(scripts).filter((script) => fileOf(script) !== undefined)

/** What a program prints for the arguments in an empty DATA_DIR. */
async function run(script: string, args: readonly string[]) {
  const dataDir = folders.make()
  const command = [join(REPOSITORY, String(fileOf(script))), ...args]
  const ended = await startProcess(process.execPath, command, { environment: { DATA_DIR: dataDir } }).ended
  return { ...ended, written: readdirSync(dataDir) }
}

describe.each(programs)('npm run %s', (script) => {
  it('prints its usage, fits 100 columns, and does nothing else', async () => {
    // Half of the programs get --help, half -h: starting one takes longer than most tests.
    const help = await run(script, [programs.indexOf(script) % 2 === 0 ? '--help' : '-h'])
    expect(help).toMatchObject({ code: 0, stderr: '', written: [] })
    expect(help.stdout).toContain('npm ')
    expect(help.stdout.split('\n').filter((line) => line.length > 100)).toEqual([])
  })
})

/** Pages with tables of commands. */
const pages = ['README.md', 'data/deploy/README.md', 'pipeline/README.md', 'test/README.md'].map((name) =>
  readFileSync(join(REPOSITORY, name), 'utf8'),
)

it.each(Object.keys(scripts))('a README lists the command %s', (name) => {
  const command = ['start', 'test'].includes(name) ? `npm ${name}` : name
  expect(pages.join('\n')).toMatch(new RegExp(`\\b${command}\\b`))
})

/** What the documents call: script, command, options. A word in capitals or a path stands for a value. */
const calls = globSync(['*.md', '{api,data,pipeline,test}/**/*.md'], { cwd: REPOSITORY })
  .filter((name) => !name.endsWith('CHANGELOG.md') && !name.endsWith('CONTRACT.md'))
  .flatMap((name) => [
    ...readFileSync(join(REPOSITORY, name), 'utf8').matchAll(/npm run (?:-s )?([a-z-]+) -- ([^`|\n#]*)/g),
  ])
  .map(([, script = '', words = '']) => ({
    script,
    command: /^[a-z]+(?= |$|`)/.exec(words)?.[0],
    options: [...words.matchAll(/--[a-z][a-z-]+/g)].map(([option]) => option),
  }))
const calledCommands = Map.groupBy(
  calls.filter(({ script }) => fileOf(script) !== undefined),
  ({ script, command }) => (command === undefined ? script : `${script} ${command}`),
)

it('the documents call several commands', () => {
  expect(calledCommands.size).toBeGreaterThan(15)
  expect(calls.filter(({ script }) => scripts[script] === undefined)).toEqual([])
})

it.each([...calledCommands])('the documents call %s with existing options', async (name, called) => {
  const [script = '', command] = name.split(' ')
  const help = await run(script, command === undefined ? ['--help'] : [command, '--help'])
  expect(help).toMatchObject({ code: 0, stderr: '' })
  const options = called.flatMap((call) => call.options)
  expect(options.filter((option) => !help.stdout.includes(option))).toEqual([])
})
