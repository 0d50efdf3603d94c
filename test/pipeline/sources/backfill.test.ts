/** CONTRACT 9: `run --from --to`: counts the days of a range again, whatever their fingerprint, and no other day. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { deliver, runCommand, withApps } from '../../support/pipeline/nightly.ts'

const DAYS = ['2026-01-04', '2026-01-05', '2026-01-06', '2026-01-07']
const AS_OF = '2026-01-08T02:00:00Z'

/** A DATA_DIR with these days published. */
async function published(): Promise<string> {
  const dataDir = withApps('One')
  for (const day of DAYS) deliver(dataDir, day, ['1,10,0'])
  await runAt(dataDir, AS_OF)
  return dataDir
}

describe('a run over a range', () => {
  const range = { from: '2026-01-05', to: '2026-01-06' }
  let dataDir = ''

  beforeEach(async () => {
    dataDir = await published()
  })

  it('counts each of its days again, and publishes nothing if the figures are the same', async () => {
    const report = await runAt(dataDir, '2026-01-08T03:00:00Z', { range })
    expect(fact(report, 'load', 'days_loaded')).toBe(2)
    expect(fact(report, 'load', 'days_unchanged')).toBe(2)
    expect(report.outcome).toBe('unchanged')
  })

  it('leaves changed days outside the range to the next full run, and reports how many', async () => {
    deliver(dataDir, '2026-01-04', ['1,99,0'])
    deliver(dataDir, '2026-01-05', ['1,77,0'])
    rmSync(join(dataDir, 'raw/usage/date=2026-01-07'), { recursive: true })
    const report = await runAt(dataDir, '2026-01-08T03:00:00Z', { range })
    expect(fact(report, 'load', 'days_left')).toBe(2)
    expect(fact(report, 'load', 'days_unchanged')).toBe(0)
    expect(await queryWarehouse(dataDir, 'SELECT prompt_tokens FROM usage_daily ORDER BY day')).toEqual(
      ['10', '77', '10', '10'].map((prompt_tokens) => ({ prompt_tokens })),
    )
    const full = await runAt(dataDir, '2026-01-08T04:00:00Z', { accepted: ['rows'] })
    expect(fact(full, 'load', 'days_loaded')).toBe(1)
    expect(fact(full, 'load', 'days_removed')).toBe(1)
  })
})

describe('plan', () => {
  let dataDir = ''
  const plan = (range: string) => {
    const args = ['plan', '--json', '--as-of', AS_OF]
    return runCommand(dataDir, ...args, ...range.split(' ').filter(Boolean))
  }

  beforeAll(async () => {
    dataDir = await published()
  })

  it.each([
    ['--from 2026-01-06', ['2026-01-06', '2026-01-07']],
    ['--to 2026-01-05', ['2026-01-04', '2026-01-05']],
    ['--from 2026-01-07 --to 2026-01-07', ['2026-01-07']],
    ['--from 2025-01-01 --to 2025-01-01', []],
    ['', []],
  ])('%s reads %j', async (range, days) => {
    const { stdout } = await plan(range)
    const read = days.map((day) => expect.objectContaining({ day }))
    expect(JSON.parse(stdout)).toMatchObject({ read, unchanged: DAYS.length - days.length, left: 0 })
  })

  it.each([
    ['--from 2026-02-30', '--from: Expected a day, YYYY-MM-DD\n'],
    ['--to 2024-12-31', '--from 2025-01-01 is after 2024-12-31: --to, or the last completed day'],
    ['--from 2026-01-08', '--from 2026-01-08 is after 2026-01-07: --to, or the last completed day'],
    [
      '--from 2026-01-06 --to 2026-01-05',
      '--from 2026-01-06 is after 2026-01-05: --to, or the last completed day',
    ],
  ])('%s is rejected', async (range, message) => {
    const { code, stderr } = await plan(range)
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  })
})
