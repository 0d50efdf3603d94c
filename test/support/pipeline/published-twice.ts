/** A DATA_DIR with two snapshots that differ in days, apps and figures. */
import { expect } from 'vitest'
import { runAt } from './in-process.ts'
import { runCommand, writeRaw } from './nightly.ts'

/** The identifiers of the snapshots. */
export const FIRST = '20260107T020000Z'
export const SECOND = '20260108T020000Z'

/** A registry without tags. */
export const APPS_HEADER = 'app_id,app_name,visibility,updated_at\n'

/** Publishes both. The second night adds a day and an app, and hides another app. */
export async function publishTwice(dataDir: string): Promise<void> {
  const deliver = (day: string, tokens: number) => {
    const rows = [1, 2, 9].map((app) => `${day}T12:00:00Z,${app},${tokens * app},0`)
    const content = `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`
    writeRaw(dataDir, `usage/date=${day}/rows.csv`, content)
  }
  writeRaw(dataDir, 'apps/registry.csv', `${APPS_HEADER}1,One,public,2025-01-01\n2,Two,public,2025-01-01\n`)
  deliver('2026-01-04', 10)
  deliver('2026-01-06', 20)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  writeRaw(dataDir, 'apps/later.csv', `${APPS_HEADER}2,Two,hidden,2026-01-07\n9,Nine,public,2026-01-07\n`)
  deliver('2026-01-07', 30)
  await runAt(dataDir, '2026-01-08T02:00:00Z')
}

/** The --json result of a successful command. */
export async function jsonOf(dataDir: string, ...args: readonly string[]): Promise<unknown> {
  const ended = await runCommand(dataDir, ...args, '--json')
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  return JSON.parse(ended.stdout)
}
