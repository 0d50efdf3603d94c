/** A run that is stopped in each of its stages, kindly or not: the snapshot before stays, the next run is right. */
import type { Readable } from 'node:stream'
import { afterAll, describe, expect, it } from 'vitest'
import {
  TemporaryFolders,
  currentSnapshot,
  publish,
  queryCurrent,
  startNightly,
  writeRaw,
} from '../support/nightly.ts'

const APPS = 30_000
const STAGES = ['load', 'resolve', 'rank', 'check', 'gate', 'bundle', 'publish']

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

function deliver(dataDir: string, day: string): void {
  const rows = Array.from({ length: APPS }, (_, app) => `${day},${app + 1},${app + 1},1`)
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
}

async function firstNight(): Promise<string> {
  const dataDir = folders.make()
  const apps = Array.from({ length: APPS }, (_, app) => `${app + 1},App ${app + 1},public,2025-01-01`)
  writeRaw(dataDir, 'apps/registry.csv', `app_id,app_name,visibility,updated_at\n${apps.join('\n')}\n`)
  deliver(dataDir, '2026-01-05')
  await publish(dataDir, '2026-01-06T02:00:00Z')
  deliver(dataDir, '2026-01-06')
  return dataDir
}

/** Sends the signal as soon as the stage before is over; the first stage begins with the process. */
async function stopIn(dataDir: string, stage: string, signal: NodeJS.Signals) {
  const before = STAGES[STAGES.indexOf(stage) - 1]
  const { child, ended } = startNightly(dataDir, '--as-of', '2026-01-07T02:00:00Z')
  if (before !== undefined) await seenOn(child.stderr, `${before.padEnd(8)} `, ended)
  child.kill(signal)
  return await ended
}

/** Resolves when the text has come, or the process has ended without it. */
async function seenOn(stream: Readable, text: string, ended: Promise<unknown>): Promise<void> {
  let seen = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  stream.on('data', (part: string) => {
    seen += part
    if (seen.includes(text)) resolve()
  })
  await Promise.race([promise, ended])
}

describe.each(['SIGTERM', 'SIGKILL'] as const)('%s', (signal) => {
  it.each(STAGES)('in the stage %s harms nothing', async (stage) => {
    const dataDir = await firstNight()
    const before = currentSnapshot(dataDir)
    const ended = await stopIn(dataDir, stage, signal)
    // The last stages take less than a signal needs to arrive; then the run may have come to its end.
    if (ended.signal === null) {
      expect(['bundle', 'publish']).toContain(stage)
      expect(ended.code).toBe(0)
    } else {
      expect(ended.signal).toBe(signal)
      expect([before, before.replace('20260106', '20260107')]).toContain(currentSnapshot(dataDir))
      // A process that has not yet begun has no word to say.
      if (signal === 'SIGTERM' && stage !== 'load') {
        expect(ended.stderr).toContain('Stopped by SIGTERM. What is published stays')
      }
    }
    await publish(dataDir, '2026-01-07T02:00:00Z')
    expect(
      await queryCurrent(dataDir, 'SELECT day, count(*) AS apps FROM app_daily GROUP BY day ORDER BY day'),
    ).toEqual([
      { day: '2026-01-05', apps: String(APPS) },
      { day: '2026-01-06', apps: String(APPS) },
    ])
  })
})
