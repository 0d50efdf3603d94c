/** The bench runs every case once, briefly, and prints every figure. People judge the figures. */
import { expect, it } from 'vitest'
import { printedBy } from '../../support/printed.ts'
import { benchChat } from '../../bench/chat/chat.ts'

it('the bench of chat runs whole replies and streams, direct and through both gateways', async () => {
  const text = await printedBy((print) =>
    benchChat(print, { runs: 1, concurrencies: [2], warmMs: 30, ms: 60 }),
  )
  for (const name of ['whole, 2 at a time', 'stream, 2 at a time', 'this service', 'Portkey gateway']) {
    expect(text).toContain(name)
  }
  expect(text).not.toMatch(/NaN|Infinity|undefined/)
})
