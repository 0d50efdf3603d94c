/** A DATA_DIR with two snapshots that differ in days, apps and figures. */
import { runAt } from './in-process.ts'
import { deliver, register } from './nightly.ts'

/** The identifiers of the snapshots. */
export const FIRST = '20260107T020000Z'
export const SECOND = '20260108T020000Z'

/** Publishes both. The second night adds a day and an app, and hides another app. */
export async function publishTwice(dataDir: string): Promise<void> {
  const use = (day: string, tokens: number) =>
    deliver(
      dataDir,
      day,
      [1, 2, 9].map((app) => `${app},${tokens * app},0`),
    )
  register(dataDir, ['1,One,public,,,2025-01-01', '2,Two,public,,,2025-01-01'])
  use('2026-01-04', 10)
  use('2026-01-06', 20)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  register(dataDir, ['2,Two,hidden,,,2026-01-07', '9,Nine,public,,,2026-01-07'], 'later.csv')
  use('2026-01-07', 30)
  await runAt(dataDir, '2026-01-08T02:00:00Z')
}
