/** The request that `npm start` prints, pasted into a shell. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { rankingsSchema, startAll } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/nightly.ts'
import { hasProgram } from '../../support/programs.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it.skipIf(!hasProgram('curl'))('npm start prints a curl command that answers when it is pasted', async () => {
  const { welcome, child, ended } = await startAll({ DATA_DIR: folders.make() })
  const command = /Try it: +(.*)/.exec(welcome)?.[1] ?? ''
  const { stdout } = await promisify(execFile)('sh', ['-c', command])
  expect(rankingsSchema.parse(JSON.parse(stdout)).data).toHaveLength(5)
  child.kill('SIGTERM')
  await ended
})
