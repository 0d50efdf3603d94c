/** The bench runs every case once at a tiny size, and prints every figure. People judge the figures. */
import { expect, it } from 'vitest'
import { printedBy, tableRows } from '../../support/printed.ts'
import { benchServing } from '../../bench/serving/serving.ts'
import type { Sizes } from '../../bench/serving/serving.ts'

const TINY: Sizes = {
  cases: [{ apps: 200, days: 40, windows: 2, plainEvery: 2, sqliteWindows: 1 }],
  large: { apps: 2500, days: 40, windows: 2, plainEvery: 2, sqliteWindows: 0 },
  asked: 4,
  loader: 'autocannon',
  runs: 1,
  connections: 2,
  seconds: 0.3,
  swaps: 1,
}

it('the bench of serving runs windows, cached replies, swaps and growth without a failure', async () => {
  const text = await printedBy((print) => benchServing(print, { large: true, sizes: TINY }))
  expect(text).not.toMatch(/NaN|Infinity|undefined/)
  const rows = tableRows(text)
  // Both sorts, three filters, six lengths, both sizes.
  expect(rows.filter(([sort]) => sort === 'popular' || sort === 'trending')).toHaveLength(2 * 36 + 12)
  const loads = rows.filter(([name]) => /^[bcd]: /.test(name ?? ''))
  expect(loads.map(([name]) => name)).toEqual([
    'b: cached reply, bare Express',
    'b: cached reply, bare Express, all headers',
    'b: cached reply, service',
    'b: cached reply, gzip, bare Express',
    'b: cached reply, gzip, bare Express, all headers',
    'b: cached reply, gzip, service',
    'b: cached view, bare Express',
    'b: cached view, bare Express, all headers',
    'b: cached view, service',
    'b: cached view, gzip, bare Express',
    'b: cached view, gzip, bare Express, all headers',
    'b: cached view, gzip, service',
    'c: 304, bare Express',
    'c: 304, bare Express, all headers',
    'c: 304, service',
    'd: 1 of 1 new snapshots',
  ])
  expect(loads.map(([, , , , , failed]) => failed)).toEqual(loads.map(() => '0'))
  expect(rows.find(([name]) => name === 'million app-days')).toHaveLength(3)
})
