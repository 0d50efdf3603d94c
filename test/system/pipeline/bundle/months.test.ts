/** CONTRACT 8: random changes between nights: the month files equal those of a first run. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it, vi } from 'vitest'
import { addDays } from '../../../../pipeline/contract/calendar.ts'
import { DAYS, Months, monthsOf } from '../../../support/pipeline/months.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { randomFrom, seedFrom } from '../../../support/random.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('after random changes in any order, each night publishes the files of a first run', async () => {
  const months = new Months(folders, folders.make())
  months.fill()
  await months.run()
  const random = randomFrom(seedFrom('MONTHS_SEED'))
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]
  const changes: readonly (() => unknown)[] = [
    () => months.deliver(pick(DAYS) ?? '', 'late.csv', 1 + Math.floor(random() * 100)),
    () => rmSync(join(months.dataDir, `raw/usage/date=${pick(DAYS)}`), { recursive: true, force: true }),
    () => months.decide(`${pick([1, 3, 4, 6, 7])},Some,${pick(['public', 'hidden'])},game,,${months.today}`),
    () => months.decide(`${pick([3, 4, 7])},Some,public,,${pick([1, 2])},${months.today}`),
    () => (months.today = addDays(months.today, 20)),
  ]
  for (let number = 0; number < 8; number += 1) {
    pick(changes)?.()
    await months.nextNight()
    await months.expectAsAnew()
  }
  expect(monthsOf(months.dataDir).length).toBeGreaterThan(0)
})
