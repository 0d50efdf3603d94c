/** The bench runs every case once at a tiny size, and prints every figure. People judge the figures. */
import { expect, it } from 'vitest'
import { printedBy, tableRows } from '../../support/printed.ts'
import { benchPipeline } from '../../bench/pipeline/pipeline.ts'
import type { Sizes } from '../../bench/pipeline/pipeline.ts'

const TINY: Sizes = {
  runs: 1,
  day: { rows: 1000, apps: 50 },
  night: {
    histories: [2, 3],
    apps: 50,
    newDays: [
      { rows: 1000, identified: false },
      { rows: 2000, identified: true },
    ],
  },
  large: { days: 4, apps: 200 },
}

/** The rows of the table of nights. */
const NIGHT = ['', 'whole', 'load', 'resolve', 'rank', 'check', 'gate', 'bundle', 'publish', 'peak']

async function rowsOf(large: boolean): Promise<string[][]> {
  return tableRows(await printedBy((print) => benchPipeline(print, { large, sizes: TINY })))
}

it('the bench of the pipeline runs a day and a night after two histories, with and without request_ids', async () => {
  const rows = await rowsOf(false)
  expect(rows.map(([name]) => name)).toEqual([
    'case',
    'a: one day',
    'b: one day with request_id',
    ...NIGHT,
    ...NIGHT,
  ])
  expect(rows.flat().join(' ')).not.toMatch(/NaN|Infinity|undefined/)
})

it('the bench of the pipeline runs a long and wide history', async () => {
  const rows = await rowsOf(true)
  expect(rows.map(([name]) => name)).toEqual([
    '',
    'bare table, joined and in order',
    'resolve',
    'rank',
    'check',
    'gate',
    'bundle',
    'publish',
    'whole',
    'peak, stages',
    'peak, bare table',
  ])
  expect(rows.flat().join(' ')).not.toMatch(/NaN|Infinity|undefined/)
})
