/** A DATA_DIR with two snapshots that differ in days, apps and figures. */
import { runAt } from './in-process.ts'
import { deliver, register } from './nightly.ts'

/** The identifiers of the snapshots. */
export const FIRST = '20260107T020000Z'
export const SECOND = '20260108T020000Z'

/** Publishes both. The second night adds a day and an app, and hides another app. */
export async function publishTwice(dataDir: string): Promise<void> {
  register(dataDir, ['1,One,public,,,2025-01-01', '2,Two,public,,,2025-01-01'])
  deliver(dataDir, '2026-01-04', ['1,10,0', '2,20,0', '9,90,0'])
  deliver(dataDir, '2026-01-06', ['1,20,0', '2,40,0', '9,180,0'])
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  register(dataDir, ['2,Two,hidden,,,2026-01-07', '9,Nine,public,,,2026-01-07'], 'later.csv')
  deliver(dataDir, '2026-01-07', ['1,30,0', '2,60,0', '9,270,0'])
  await runAt(dataDir, '2026-01-08T02:00:00Z')
}
