/** The help of every npm script, as a terminal of 100 columns shows it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { REPOSITORY, startProcess } from '../support/processes.ts'

const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')))

// What these do is not for users of the service, and they take no option.
const WITHOUT_HELP = ['openapi', 'sample']
const programs = Object.entries(scripts).flatMap(([name, line]) => {
  const [, file] = /node (\S+\.ts)$/.exec(line) ?? []
  return file === undefined || WITHOUT_HELP.includes(name) ? [] : [{ name, file }]
})

it.each(programs)('npm run $name -- --help fits 100 columns', async ({ file }) => {
  const { code, stdout, stderr } = await startProcess(process.execPath, [join(REPOSITORY, file), '--help'], {
    environment: {},
  }).ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([])
})
