/** The bench runs every case once at a tiny size, and prints every figure. People judge the figures. */
import { expect, it } from 'vitest'
import { printedBy, tableRows } from '../../support/printed.ts'
import { benchScim } from '../../bench/scim/scim.ts'
import type { Sizes } from '../../bench/scim/scim.ts'

const TINY: Sizes = {
  runs: 1,
  usual: { groups: 150, membersPerGroup: 3 },
  large: { groups: 250, membersPerGroup: 2 },
  pageMs: 1,
}

/** The rows of the table, without its header. */
async function rowsOf(large: boolean): Promise<string[][]> {
  const rows = tableRows(await printedBy((print) => benchScim(print, { large, sizes: TINY })))
  return rows.filter(([name]) => /^[abc]:/.test(name ?? ''))
}

it.each([
  // Discovery and the pages; the total proves that these were all.
  { large: false, requests: '3', rows: String(150 + 450) },
  { large: true, requests: '4', rows: String(250 + 500) },
])(
  'a first sync writes every row, unchanged ones none (large: $large)',
  async ({ large, requests, rows }) => {
    const table = await rowsOf(large)
    expect(table.map(([name, asked, , , , written]) => [name, asked, written])).toEqual([
      ['a: first sync', requests, rows],
      ['b: unchanged', requests, '0'],
      ['c: unchanged, 1 ms a page', requests, '0'],
    ])
    expect(table.flat().join(' ')).not.toMatch(/NaN|Infinity|undefined/)
  },
)
