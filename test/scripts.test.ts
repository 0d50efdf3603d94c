/** What all the programs that package.json names have in common. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { TemporaryFolders } from './support/nightly.ts'
import { REPOSITORY, startProcess } from './support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const manifest = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')))
const programs = Object.values(manifest.scripts).flatMap(
  (script) => /node (\S+\.ts)$/.exec(script)?.[1] ?? [],
)

it('are found', () => expect(programs).toContain('pipeline/nightly.ts'))

it.each(programs)('%s tells how it is used where help is asked for, and does nothing else', async (file) => {
  const dataDir = folders.make()
  const ask = (option: string) =>
    startProcess(process.execPath, [join(REPOSITORY, file), option], { environment: { DATA_DIR: dataDir } })
      .ended
  const help = await ask('--help')
  expect(help).toMatchObject({ code: 0, stderr: '' })
  expect(help.stdout).toContain('npm ')
  expect(await ask('-h')).toEqual(help)
  expect(readdirSync(dataDir)).toEqual([])
})
