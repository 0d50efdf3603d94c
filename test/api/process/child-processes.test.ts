/** CONTRACT 9: programs that the service starts end with it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, it } from 'vitest'
import { keepRunning, runProgram, type Ending } from '../../../api/process/child-processes.ts'
import { until } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** A program that records each start in `trace`, and then runs `rest`. */
function makeProgram(rest: string) {
  const folder = folders.make()
  const trace = join(folder, 'trace')
  const program = join(folder, 'program.mts')
  writeFileSync(
    program,
    `import { appendFileSync } from 'node:fs'
     appendFileSync(${JSON.stringify(trace)}, process.argv.slice(2).join(' ') + '\\n')
     ${rest}`,
  )
  const starts = () => (existsSync(trace) ? readFileSync(trace, 'utf8').split('\n').slice(0, -1) : [])
  return { program: pathToFileURL(program), starts }
}

const RUN_FOREVER = 'setInterval(() => undefined, 1000)'

/** Keeps a program running until `stop`. */
function keep(program: URL, delayMs: number) {
  const [stopping, endings] = [new AbortController(), [] as Ending[]]
  const onEnd = (ending: Ending) => endings.push(ending)
  const ended = keepRunning(program, ['--once'], { delayMs, onEnd, signal: stopping.signal })
  const stop = async () => {
    stopping.abort()
    await ended
  }
  return { endings, stop }
}

it('a program gets its arguments, and its exit code is returned', async () => {
  const { program, starts } = makeProgram('process.exitCode = 75')
  expect(await runProgram(program, ['run', 'it'], new AbortController().signal)).toMatchObject({ code: 75 })
  expect(starts()).toEqual(['run it'])
})

it('a program that ended by itself is started again, and how it ended is reported', async () => {
  const { program, starts } = makeProgram('process.exitCode = 3')
  const { endings, stop } = keep(program, 1)
  await until(() => starts().length >= 3)
  await stop()
  expect(endings.slice(0, 2)).toMatchObject([{ code: 3 }, { code: 3 }])
  expect(new Set(starts())).toEqual(new Set(['--once']))
})

it('a program that was stopped has ended, and is not started again', async () => {
  const { program, starts } = makeProgram(RUN_FOREVER)
  const { endings, stop } = keep(program, 1)
  await until(() => starts().length === 1)
  await stop()
  expect([endings, starts()]).toEqual([[], ['--once']])
})

it('a program is stopped without delay between two starts', async () => {
  const { program } = makeProgram('')
  const { endings, stop } = keep(program, 1_000_000_000)
  await until(() => endings.length === 1)
  await stop()
  expect(endings).toMatchObject([{ code: 0 }])
})
