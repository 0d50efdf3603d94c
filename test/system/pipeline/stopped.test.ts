/**
 * CONTRACT 9: a run that is stopped in any stage, by SIGTERM or SIGKILL: the previous snapshot stays, the next run is
 * correct.
 */
import type { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { TemporaryFolders, currentSnapshot, startNightly } from '../../support/pipeline/nightly.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../../support/pipeline/two-nights.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const APPS = 30_000
const STAGES = ['load', 'resolve', 'rank', 'check', 'gate', 'bundle', 'publish']

/** Stages that are shorter than a signal's delivery; the run may then finish. */
const BRIEF_STAGES = ['bundle', 'publish']

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** State after the first night. */
const template = folders.make()

beforeAll(() => publishFirstNight(template, APPS))

/** Sends the signal as soon as the previous stage is over; the first stage begins with the process. */
async function stopIn(dataDir: string, stage: string, signal: NodeJS.Signals) {
  const before = STAGES[STAGES.indexOf(stage) - 1]
  const { child, ended } = startNightly(dataDir, '--as-of', SECOND_NIGHT)
  if (before !== undefined) await seenOn(child.stderr, `${before.padEnd(8)} `, ended)
  child.kill(signal)
  return await ended
}

/** Resolves once the text is printed, or the process has ended without it. */
async function seenOn(stream: Readable, text: string, ended: Promise<unknown>): Promise<void> {
  let seen = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  stream.on('data', (part: string) => {
    seen += part
    if (seen.includes(text)) resolve()
  })
  await Promise.race([promise, ended])
}

/**
 * A second night that is stopped in this stage. On a busy machine a run may end before the signal arrives; then another run
 * is stopped.
 */
async function stoppedNight(stage: string, signal: NodeJS.Signals) {
  for (;;) {
    const dataDir = folders.copy(template)
    const before = currentSnapshot(dataDir)
    const ended = await stopIn(dataDir, stage, signal)
    if (ended.signal === null) expect(ended.code).toBe(0)
    if (ended.signal !== null || BRIEF_STAGES.includes(stage)) return { dataDir, before, ended }
  }
}

describe.each(['SIGTERM', 'SIGKILL'] as const)('%s', (signal) => {
  it.each(STAGES)('a run stopped in the stage %s does no harm', async (stage) => {
    const { dataDir, before, ended } = await stoppedNight(stage, signal)
    if (ended.signal !== null) {
      expect(ended.signal).toBe(signal)
      expect([before, before.replace('20260106', '20260107')]).toContain(currentSnapshot(dataDir))
      // A process that has not begun yet prints nothing.
      if (signal === 'SIGTERM' && stage !== 'load') {
        expect(ended.stderr).toContain('Stopped by SIGTERM. What is published stays')
      }
    }
    await expectSecondNight(dataDir, APPS)
  })
})
