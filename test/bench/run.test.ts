/** CONTRACT 9: `npm run bench` explains its parts and rejects wrong arguments, without measuring. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { REPOSITORY, startProcess } from '../support/processes.ts'

function bench(...args: readonly string[]) {
  const file = join(REPOSITORY, 'test', 'bench', 'run.ts')
  return startProcess(process.execPath, [file, ...args], { environment: {} }).ended
}

it('bench --help lists the parts on stdout', async () => {
  const help = await bench('--help')
  expect(help).toMatchObject({ code: 0, stderr: '' })
  for (const part of ['pipeline', 'chat', 'scim', 'serving']) expect(help.stdout).toContain(part)
})

it.each([
  ['--small', "Unknown option '--small'"],
  ['speed', 'Unknown part speed: expected pipeline, chat, scim, serving'],
])('bench %s ends with 2 and a sentence', async (arg, message) => {
  const { code, stdout, stderr } = await bench(arg)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
  expect(stderr).not.toContain('    at ')
})
