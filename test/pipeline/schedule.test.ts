/** CONTRACT 9: the nightly schedule: a run that met a held lock is repeated, and the operator hears of it. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { readConfig } from '../../pipeline/config.ts'
import { readLastRun } from '../../pipeline/contract/last-run.ts'
import { EXIT_LOCKED } from '../../pipeline/errors.ts'
import { createRun } from '../../pipeline/schedule.ts'
import { makeFolder } from '../support/folders.ts'

const MINUTE = 60_000

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => vi.useRealTimers())

/** A schedule of which each run ends as the next of `ends`, and what it started. */
function scheduled(ends: readonly (number | string)[]) {
  const dataDir = makeFolder()
  const started: string[] = []
  const left = [...ends]
  const run = createRun(readConfig({ DATA_DIR: dataDir }), async (...args) => {
    started.push(args.join(' '))
    return args[0] === 'run' ? (left.shift() ?? 0) : 0
  })
  return { dataDir, started, run }
}

it.each([
  [EXIT_LOCKED, 'Another process held the lock when the run was due'],
  ['SIGKILL', 'The run ended with SIGKILL'],
])('a run that ends with %s is repeated every five minutes until it begins', async (end, reason) => {
  const { dataDir, started, run } = scheduled([end, end, 0])
  await run()
  const message = `${reason}. The schedule tries again in 5 minutes`
  expect(readLastRun(dataDir)).toMatchObject({ outcome: 'late', snapshot: null, message })
  await vi.advanceTimersByTimeAsync(5 * MINUTE - 1)
  expect(started).toEqual(['run', 'verify --all'])
  await vi.advanceTimersByTimeAsync(1)
  await vi.advanceTimersByTimeAsync(5 * MINUTE)
  await vi.advanceTimersByTimeAsync(60 * MINUTE)
  expect(started).toEqual(['run', 'verify --all', 'run', 'run'])
})

it.each([1, 2])('a run that ends with exit code %s waits for its next time', async (code) => {
  const { started, run } = scheduled([code])
  await run()
  await vi.advanceTimersByTimeAsync(60 * MINUTE)
  expect(started).toEqual(['run', 'verify --all'])
})

it('a run that is due while the last one is under way is skipped, one that cannot be started ends nothing', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<number>()
  const ends = [Promise.reject(new Error('ENOENT')), ended, Promise.resolve(0)]
  const runProcess = vi.fn(async (name: string) => (name === 'run' ? await ends.shift() : 0) ?? 0)
  const run = createRun(readConfig({ DATA_DIR: makeFolder() }), runProcess)
  await run()
  const underWay = run()
  await run()
  end(0)
  await underWay
  await run()
  expect(runProcess.mock.calls.map((args) => args.join(' '))).toEqual(['run', 'run', 'verify --all', 'run'])
})
