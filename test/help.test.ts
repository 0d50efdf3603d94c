/** CONTRACT 9: every program of package.json explains itself, and the documents name only commands and options that exist. */
import { globSync, readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { directories } from '../api/commands/directories.ts'
import { keys } from '../api/commands/keys.ts'
import { apps } from '../pipeline/apps.ts'
import { nightly } from '../pipeline/nightly.ts'
import { makeFolder } from './support/folders.ts'
import { SILENT } from './support/pipeline/in-process.ts'
import { REPOSITORY, runCommandLine, startProgram, textOf, type Command } from './support/processes.ts'

const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(textOf('package.json')))
const fileOf = (script: string) => /node (\S+\.ts)$/.exec(scripts[script] ?? '')?.[1]
const programs = Object.keys(scripts).filter((script) => fileOf(script) !== undefined)

/** Starts a program with the arguments. */
function start(script: string, args: readonly string[], DATA_DIR: string) {
  return startProgram(String(fileOf(script)), args, { DATA_DIR }).ended
}

it.each(programs)('npm run %s prints its usage, fits 100 columns, and does nothing else', async (script) => {
  const dataDir = makeFolder()
  // Half of the programs get --help, half -h: starting one takes longer than most tests.
  const help = await start(script, [programs.indexOf(script) % 2 === 0 ? '--help' : '-h'], dataDir)
  expect(help).toMatchObject({ code: 0, stderr: '' })
  expect(readdirSync(dataDir)).toEqual([])
  expect(help.stdout).toContain('npm ')
  expect(help.stdout.split('\n').filter((line) => line.length > 100)).toEqual([])
})

/** Pages with tables of commands. */
const pages = ['README.md', 'data/deploy/README.md', 'pipeline/README.md', 'test/README.md'].map(textOf)

it.each(Object.keys(scripts))('a README lists the command %s', (name) => {
  const command = ['start', 'test'].includes(name) ? `npm ${name}` : `(?:npm run (?:-s )?|\`)${name}`
  expect(pages.join('\n')).toMatch(new RegExp(`${command}(?![\\w:-])`))
})

/** What the documents call: script, command, options. A word in capitals or a path stands for a value. */
const calls = globSync(['*.md', '{api,data,pipeline,test}/**/*.md'], { cwd: REPOSITORY })
  .filter((name) => !name.endsWith('CHANGELOG.md') && !name.endsWith('CONTRACT.md'))
  .flatMap((name) => [...textOf(name).matchAll(/npm run (?:-s )?([a-z-]+) -- ([^`|\n#]*)/g)])
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

/** Programs with many commands, which need no process of their own to print a help. */
const HERE: Readonly<Record<string, Command>> = {
  apps,
  directories: (line) => directories(line),
  keys,
  nightly: (line) => nightly(line, SILENT),
}

it.each([...calledCommands])('the documents call %s with existing options', async (name, called) => {
  const [script = '', ...command] = name.split(' ')
  const args = [...command, '--help']
  const here = HERE[script]
  const help = await (here === undefined ? start(script, args, makeFolder()) : runCommandLine(here, args, {}))
  expect(help).toMatchObject({ code: 0, stderr: '' })
  const options = called.flatMap((call) => call.options)
  expect(options.filter((option) => !help.stdout.includes(option))).toEqual([])
})
