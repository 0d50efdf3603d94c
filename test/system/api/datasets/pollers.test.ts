/**
 * CONTRACT 4.6: a mirror by `wget -N` through a publication, a correction, a retraction and another publication has the
 * current files after each, never withdrawn ones.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, it } from 'vitest'
import { served, startApi } from '../../../support/api.ts'
import { makeFolder } from '../../../support/folders.ts'
import { LONG } from '../../../support/long.ts'
import { currentSnapshot, deliver, publish, register, runCommand } from '../../../support/pipeline/nightly.ts'
import { startProcess } from '../../../support/processes.ts'
import { hasProgram } from '../../../support/programs.ts'

const FILES = [
  'SHA256SUMS',
  'apps.csv',
  'rankings.csv',
  'rankings.parquet',
  'app-rankings.duckdb',
  'app_daily/month=2026-01.parquet',
]

const dataDir = makeFolder()

/** Publishes a day's only figure; each has as many digits as the others. */
async function publishTokens(tokens: number, asOf: string): Promise<void> {
  deliver(dataDir, '2026-01-06', [`1,${tokens},0`])
  await publish(dataDir, asOf)
}

/** What happens, and the time of the current snapshot afterwards. */
const EVENTS: readonly (readonly [string, string, () => Promise<unknown>])[] = [
  ['publish', '2026-01-07T02:00:00Z', async () => undefined],
  ['correct', '2026-01-08T02:00:00Z', () => publishTokens(20, '2026-01-08T02:00:00Z')],
  [
    'retract',
    '2026-01-07T02:00:00Z',
    () => runCommand(dataDir, 'retract', '20260108T020000Z', '--reason', 'Counted twice'),
  ],
  // After the retraction, whose time is the present.
  ['publish again', '2126-01-09T02:00:00Z', () => publishTokens(30, '2126-01-09T02:00:00Z')],
]

it.runIf(hasProgram('wget'))('a mirror has the current data after each event', LONG, async () => {
  register(dataDir, ['1,One,public,,,2025-01-01'])
  await publishTokens(10, '2026-01-07T02:00:00Z')
  await using api = await startApi(dataDir)
  const mirror = makeFolder('mirror')
  const urls = FILES.map((name) => `${api.base}/datasets/app-rankings/snapshots/latest/${name}`)
  const sums = (folder: string, names: readonly string[]) =>
    names.map((name) =>
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    )
  for (const [event, asOf, happen] of EVENTS) {
    await happen()
    await served(api, asOf)
    // Twice: a present file is not downloaded again.
    for (let turn = 0; turn < 2; turn += 1) {
      const wget = await startProcess('wget', ['-N', '-T', '60', '-t', '1', '-P', mirror, ...urls], {
        environment: { LC_ALL: 'C' },
      }).ended
      expect([event, wget.code, wget.code === 0 ? '' : wget.stderr]).toEqual([event, 0, ''])
      if (turn > 0) expect([event, wget.stderr.match(/saved/g)]).toEqual([event, null])
    }
    const names = FILES.map((name) => basename(name))
    expect([event, sums(mirror, names)]).toEqual([event, sums(currentSnapshot(dataDir), FILES)])
  }
  // A reader of the feed hears of the new figures too.
  expect(await (await fetch(`${api.origin}/feed.xml`)).text()).toContain('Days with new figures: 1;')
})
