/** CONTRACT 9: `run --from --to`: counts the days of a range again, whatever their fingerprint, and no other day. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { readRange } from '../../../pipeline/run-options.ts'
import { makeFolder } from '../../support/folders.ts'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { runCommand, writeRaw } from '../../support/pipeline/nightly.ts'

const DAYS = ['2026-01-04', '2026-01-05', '2026-01-06', '2026-01-07']
const AS_OF = '2026-01-08T02:00:00Z'
let dataDir = ''

function deliver(day: string, tokens: number): void {
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${day},1,${tokens},0\n`,
  )
}

describe('a run over a range', () => {
  const range = { from: '2026-01-05', to: '2026-01-06' }

  beforeEach(async () => {
    dataDir = makeFolder()
    writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
    for (const day of DAYS) deliver(day, 10)
    await runAt(dataDir, AS_OF)
  })

  it('counts each of its days again, and publishes nothing if the figures are the same', async () => {
    const report = await runAt(dataDir, '2026-01-08T03:00:00Z', { range })
    expect(fact(report, 'load', 'days_loaded')).toBe(2)
    expect(fact(report, 'load', 'days_unchanged')).toBe(2)
    expect(report.outcome).toBe('unchanged')
  })

  it('leaves changed days outside the range to the next full run, and reports how many', async () => {
    deliver('2026-01-04', 99)
    deliver('2026-01-05', 77)
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

  it('with --dry-run shows the days of the range', async () => {
    const args = ['run', '--dry-run', '--json', '--as-of', AS_OF, '--from', '2026-01-06']
    const { stdout } = await runCommand(dataDir, ...args)
    expect(JSON.parse(stdout)).toMatchObject({
      read: [{ day: '2026-01-06' }, { day: '2026-01-07' }],
      unchanged: 2,
      left: 0,
    })
  })
})

describe('readRange', () => {
  it('accepts --from or --to alone', () => {
    expect(readRange({ from: '2026-01-05' }, '2026-01-07')).toEqual({ from: '2026-01-05', to: '2026-01-07' })
    expect(readRange({ to: '2026-01-05' }, '2026-01-07')).toEqual({ from: '2025-01-01', to: '2026-01-05' })
    expect(readRange({}, '2026-01-07')).toBeUndefined()
  })

  it.each(['2025-01-01', '2026-01-07'])('may be the single day %s, at either end of the dataset', (day) => {
    expect(readRange({ from: day, to: day }, '2026-01-07')).toEqual({ from: day, to: day })
  })

  it.each([
    [{ from: '2026-02-30' }, '--from "2026-02-30" is not a day: expected YYYY-MM-DD'],
    [{ to: '2024-12-31' }, '--to 2024-12-31 is before 2025-01-01, the first day of the dataset'],
    [{ to: '2026-01-08' }, '--to 2026-01-08 is not over yet: the last completed day is 2026-01-07'],
    [{ from: '2026-01-06', to: '2026-01-05' }, '--from 2026-01-06 is after --to 2026-01-05'],
  ])('the range %j is rejected', (given, message) => {
    expect(() => readRange(given, '2026-01-07')).toThrow(message)
  })
})
