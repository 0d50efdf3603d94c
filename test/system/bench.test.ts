/** CONTRACT 9: `npm run bench`. Every part runs once at a tiny size and prints every figure; people judge the figures. */
import { describe, expect, it } from 'vitest'
import { benchChat } from '../bench/chat/chat.ts'
import { benchPipeline } from '../bench/pipeline/pipeline.ts'
import { benchScim } from '../bench/scim/scim.ts'
import { benchServing } from '../bench/serving/serving.ts'
import { LONG } from '../support/long.ts'
import { hasProgram } from '../support/programs.ts'

const WINDOWS = { days: 40, windows: 2 }

describe.runIf(hasProgram('wrk'))('npm run bench', () => {
  it.each([
    {
      part: 'pipeline',
      rows: [
        'a: one day',
        "e: chat's records, processor time",
        'f: compressed CSV, processor time',
        'whole',
        'peak',
      ],
      bench: (print: (text: string) => void) =>
        benchPipeline(print, {
          large: false,
          sizes: {
            runs: 1,
            day: { rows: 1000, apps: 50 },
            text: { records: 1000, csv: 1000, apps: 50 },
            night: { histories: [2, 3], apps: 50, newDays: [{ rows: 1000, identified: true }] },
            large: { days: 4, apps: 200 },
          },
        }),
    },
    {
      part: 'chat',
      rows: ['whole, 2 at a time', 'stream, 2 at a time'],
      bench: (print: (text: string) => void) =>
        benchChat(print, { runs: 1, concurrencies: [2], warmSeconds: 1, seconds: 1 }),
    },
    {
      part: 'scim',
      rows: ['a: first sync', 'b: unchanged', 'd: first sync', 'e: all members change'],
      bench: (print: (text: string) => void) =>
        benchScim(print, {
          large: false,
          sizes: {
            runs: 1,
            usual: { groups: 150, membersPerGroup: 3 },
            large: { groups: 250, membersPerGroup: 2 },
            service: { groups: 150, membersPerGroup: 3 },
            pageMs: 1,
          },
        }),
    },
    {
      part: 'serving',
      rows: ['b: cached reply, service', 'c: 304, service'],
      bench: (print: (text: string) => void) =>
        benchServing(print, {
          large: false,
          sizes: {
            cases: [{ apps: 200, ...WINDOWS }],
            large: { apps: 2500, ...WINDOWS },
            peer: { apps: 200, days: 10, windows: 1, tail: 0.8 },
            asked: 4,
            runs: 1,
            connections: 2,
            seconds: 1,
          },
        }),
    },
  ])('the part $part prints every figure', LONG, async ({ rows, bench }) => {
    const lines: string[] = []
    await bench((line) => void lines.push(line))
    const text = lines.join('\n')
    for (const row of rows) expect(text).toContain(`\n| ${row} |`)
    expect(text).not.toMatch(/NaN|Infinity|undefined/)
  })
})
