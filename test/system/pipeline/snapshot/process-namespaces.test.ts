/** Two containers on one DATA_DIR do not see each other's processes, and both may have a process 1. */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readdirSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import { said } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { startProcess } from '../../../support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** Runs Node as process 1 of a new namespace. */
const NAMESPACE = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount-proc']

const isAllowed = spawnSync('unshare', [...NAMESPACE, 'true']).status === 0
if (!isAllowed) process.stderr.write('unshare is not allowed here: the test of two namespaces is skipped\n')

function inNamespace(script: string, folder: string) {
  const node = [process.execPath, '--input-type=module', '--eval', script, folder]
  return startProcess('unshare', [...NAMESPACE, ...node], { environment: {} })
}

const HOLD = `
  import { writeFileSync } from 'node:fs'
  import { withOwnPath } from './pipeline/snapshot/own-files.ts'
  await withOwnPath(process.argv[1], '.part-', async (path) => {
    writeFileSync(path, 'half')
    console.log('process ' + process.pid + ' holds ' + path)
    await new Promise((resolve) => setTimeout(resolve, 600_000))
  })`
const CLEAR = `
  import { clearLeft } from './pipeline/snapshot/own-files.ts'
  clearLeft(process.argv[1], '.part-')
  console.log('process ' + process.pid + ' cleared')`

it.runIf(isAllowed)(
  'a process in another namespace keeps files of a living one, and removes files of a killed one',
  async () => {
    const folder = folders.make()
    const holder = inNamespace(HOLD, folder)
    const [, path = ''] = await said(holder, 'stdout', /process 1 holds (\S+)/)
    expect((await inNamespace(CLEAR, folder).ended).stdout).toBe('process 1 cleared\n')
    expect(existsSync(path)).toBe(true)
    holder.child.kill('SIGKILL')
    await holder.ended
    expect(globSync('.part-*', { cwd: folder })).toHaveLength(1)
    expect((await inNamespace(CLEAR, folder).ended).stdout).toBe('process 1 cleared\n')
    expect(readdirSync(folder)).toEqual([])
  },
)
