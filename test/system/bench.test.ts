/** CONTRACT 9: `npm run bench`. Every part runs once at a tiny size; people judge the figures. */
import { describe, expect, it } from 'vitest'
import { benchChat } from '../bench/chat/chat.ts'
import type { Print } from '../bench/measure.ts'
import { benchPipeline } from '../bench/pipeline/pipeline.ts'
import { benchScim } from '../bench/scim/scim.ts'
import { benchServing } from '../bench/serving/serving.ts'
import { LONG } from '../support/long.ts'
import { hasProgram } from '../support/programs.ts'

/** Runs a part of the bench, and expects these rows among its tables. */
async function expectRows(bench: (print: Print) => Promise<void>, ...rows: readonly string[]): Promise<void> {
  const lines: string[] = []
  await bench((line) => void lines.push(line))
  const text = lines.join('\n')
  for (const row of rows) expect(text).toContain(`\n| ${row} |`)
  expect(text).not.toMatch(/NaN|Infinity|undefined/)
}

describe.runIf(hasProgram('wrk'))('npm run bench prints every figure of', () => {
  it('the pipeline', LONG, async () => {
    const sizes = {
      runs: 1,
      day: { rows: 1000, apps: 50 },
      text: { records: 1000, csv: 1000, apps: 50 },
      night: { histories: [2, 3], apps: 50, newDays: [{ rows: 1000, identified: true }] },
      large: { days: 4, apps: 200 },
    } as const
    const texts = ["e: chat's records, processor time", 'f: compressed CSV, processor time']
    const rows = ['a: one day', ...texts, 'whole', 'peak']
    await expectRows((print) => benchPipeline(print, { large: false, sizes }), ...rows)
    await expectRows((print) => benchPipeline(print, { large: true, sizes }), 'publish', 'peak, stages')
  })

  it('chat', LONG, async () => {
    const sizes = { runs: 1, concurrencies: [2], warmSeconds: 1, seconds: 1 }
    const rows = ['whole, 2 at a time', 'stream, 2 at a time']
    await expectRows((print) => benchChat(print, { large: false, sizes }), ...rows)
  })

  it('directory sync', LONG, async () => {
    const size = { groups: 150, membersPerGroup: 3 }
    const sizes = { runs: 1, usual: size, large: size, service: size, pageMs: 1 }
    const rows = ['a: first sync', 'b: unchanged', 'd: first sync', 'e: all members change']
    await expectRows((print) => benchScim(print, { large: false, sizes }), ...rows)
  })

  it('serving', LONG, async () => {
    const size = { apps: 200, days: 40, windows: 2 }
    const peer = { apps: 200, days: 10, windows: 1, tail: 0.8 }
    const load = { runs: 1, connections: 2, seconds: 1 }
    const sizes = { cases: [size], large: size, peer, asked: 4, ...load }
    const rows = ['b: cached reply, service', 'c: 304, service']
    await expectRows((print) => benchServing(print, { large: false, sizes }), ...rows)
  })
})
