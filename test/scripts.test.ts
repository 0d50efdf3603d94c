/** Tests of every program in package.json. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { TemporaryFolders } from './support/pipeline/nightly.ts'
import { REPOSITORY, startProcess } from './support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const manifest = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')))
const programs = Object.values(manifest.scripts).flatMap(
  (script) => /node (\S+\.ts)$/.exec(script)?.[1] ?? [],
)

it('package.json lists the programs', () => expect(programs).toContain('pipeline/nightly.ts'))

it.each(programs)('%s --help and -h print the usage and do nothing else', async (file) => {
  const dataDir = folders.make()
  // Half of the programs get --help, half -h: starting one takes longer than most tests.
  const option = programs.indexOf(file) % 2 === 0 ? '--help' : '-h'
  const command = [join(REPOSITORY, file), option]
  const help = await startProcess(process.execPath, command, { environment: { DATA_DIR: dataDir } }).ended
  expect(help).toMatchObject({ code: 0, stderr: '' })
  expect(help.stdout).toContain('npm ')
  expect(readdirSync(dataDir)).toEqual([])
})
