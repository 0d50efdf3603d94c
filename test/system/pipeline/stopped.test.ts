/**
 * CONTRACT 9: a run that is stopped in any stage or at any moment leaves a whole snapshot, and the next run is correct.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { until } from '../../support/api.ts'
import { copyFolder, makeFolder } from '../../support/folders.ts'
import { LONG } from '../../support/long.ts'
import { currentSnapshot, startNightly } from '../../support/pipeline/nightly.ts'
import {
  SECOND_NIGHT,
  expectNights,
  expectSecondNight,
  publishFirstNight,
} from '../../support/pipeline/two-nights.ts'
import { randomFrom, seedFrom } from '../../support/random.ts'

const APPS = 30_000
const STAGES = ['load', 'resolve', 'rank', 'check', 'gate', 'bundle', 'publish']
/** Stages that are shorter than a signal's delivery; the run may then finish. */
const BRIEF_STAGES = ['bundle', 'publish']

/** Runs that are killed in one folder after another, and folders. */
const KILLS = 6
const FOLDERS = 4

/** State after the first night. */
const template = makeFolder()

beforeAll(() => publishFirstNight(template, APPS), LONG.timeout)

/** Stops a second night as soon as the stage before `stage` is over. */
async function stopIn(dataDir: string, stage: string) {
  const before = STAGES[STAGES.indexOf(stage) - 1]
  const { child, output, stop } = startNightly(dataDir, 'run', '--as-of', SECOND_NIGHT)
  if (before !== undefined) {
    await until(() => output.stderr.includes(`${before.padEnd(8)} `) || child.exitCode !== null)
  }
  return await stop()
}

/** On a busy machine a run may end before the signal arrives; then another run is stopped. */
async function stoppedNight(stage: string) {
  for (;;) {
    const dataDir = copyFolder(template)
    const ended = await stopIn(dataDir, stage)
    if (ended.signal === null) expect(ended.code).toBe(0)
    if (ended.signal !== null || BRIEF_STAGES.includes(stage)) return { dataDir, ended }
  }
}

it.each(STAGES)('SIGTERM in the stage %s does no harm', LONG, async (stage) => {
  const { dataDir, ended } = await stoppedNight(stage)
  // A process that has not begun yet prints nothing.
  if (ended.signal !== null && stage !== 'load')
    expect(ended.stderr).toContain('Stopped by SIGTERM. What is published stays')
  await expectNights(dataDir, APPS)
  await expectSecondNight(dataDir, APPS)
})

it('runs killed one after the other leave whole snapshots, and the next run publishes', LONG, async () => {
  const random = randomFrom(seedFrom('KILL_SEED'))
  const start = performance.now()
  await startNightly(copyFolder(template), 'run', '--as-of', SECOND_NIGHT).ended
  const duration = performance.now() - start
  for (let folder = 0; folder < FOLDERS; folder += 1) {
    const dataDir = copyFolder(template)
    for (let kill = 0; kill < KILLS; kill += 1) {
      const { stop } = startNightly(dataDir, 'run', '--as-of', SECOND_NIGHT)
      // The moments are spread evenly over a run, and a little beyond its end.
      await pause((1.1 * duration * (kill + random())) / KILLS)
      await stop('SIGKILL')
      await expectNights(dataDir, APPS)
    }
    await expectSecondNight(dataDir, APPS)
    const names = readdirSync(join(dataDir, 'snapshots')).filter((name) => name !== 'records')
    expect(names.filter((name) => !/^\d{8}T\d{6}Z$/.test(name))).toEqual([])
    const whole = readdirSync(currentSnapshot(dataDir)).toSorted()
    for (const name of names) expect(readdirSync(join(dataDir, 'snapshots', name)).toSorted()).toEqual(whole)
  }
})
