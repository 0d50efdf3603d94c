/** CONTRACT 4.2: pages from the candidates are the pages of all apps; test/system/ draws more windows over more shapes. */
import { expect, it } from 'vitest'
import { expectSamePages, makeShaped, SHAPES } from '../../support/pipeline/shaped-snapshot.ts'

it.each(['steep', 'bursting'] as const)(
  'pages over data that are %s are the pages of all apps, whether or not the candidates prove them',
  async (name) => {
    const windows = 80
    const snapshot = await makeShaped(SHAPES[name], 1, { apps: 60, level: 3, rowShare: 100 })
    const proven = await expectSamePages(snapshot, windows, 1)
    expect(proven).toBeGreaterThan(0)
    expect(proven).toBeLessThan(windows)
    await snapshot.close()
  },
)
