/** CONTRACT 9: programs that the service starts end with it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
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

describe('runProgram', () => {
  it('passes on arguments and returns the exit code', async () => {
    const { program, starts } = makeProgram('process.exitCode = 75')
    expect(await runProgram(program, ['run', 'it']).ended).toMatchObject({ code: 75 })
    expect(starts()).toEqual(['run it'])
  })

  it('stop ends the program and waits for its end', async () => {
    const { program, starts } = makeProgram(RUN_FOREVER)
    const child = runProgram(program, [])
    await until(() => starts().length === 1)
    await child.stop()
    expect(await child.ended).toMatchObject({ signal: 'SIGTERM' })
    await child.stop()
  })
})

describe('keepRunning', () => {
  it('restarts a program that ended by itself, and reports how it ended', async () => {
    const { program, starts } = makeProgram('process.exitCode = 3')
    const endings: Ending[] = []
    const running = keepRunning(program, ['--once'], { delayMs: 1, onEnd: (ending) => endings.push(ending) })
    await until(() => starts().length >= 3)
    await running.stop()
    expect(endings.slice(0, 2)).toMatchObject([{ code: 3 }, { code: 3 }])
    expect(new Set(starts())).toEqual(new Set(['--once']))
  })

  it('does not restart it once it was stopped', async () => {
    const { program, starts } = makeProgram(RUN_FOREVER)
    const endings: Ending[] = []
    const running = keepRunning(program, ['--once'], { delayMs: 1, onEnd: (ending) => endings.push(ending) })
    await until(() => starts().length === 1)
    await running.stop()
    expect(endings).toEqual([])
    expect(starts()).toHaveLength(1)
  })

  it('stops without delay between two starts', async () => {
    const { program } = makeProgram('')
    const { promise: ended, resolve } = Promise.withResolvers<Ending>()
    const running = keepRunning(program, ['--once'], { delayMs: 1_000_000_000, onEnd: resolve })
    expect(await ended).toMatchObject({ code: 0 })
    await running.stop()
  })
})
