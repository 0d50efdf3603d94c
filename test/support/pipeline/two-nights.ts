/** Two nights over many apps: the first is published, the second is left for a test to disturb. */
import { expect } from 'vitest'
import { deliver, publish, queryCurrent, register } from './nightly.ts'

const DAYS = ['2026-01-05', '2026-01-06'] as const
const FIRST_NIGHT = '2026-01-06T02:00:00Z'

/** Time of the second night's run. */
export const SECOND_NIGHT = '2026-01-07T02:00:00Z'

/** Prompt tokens of an app on each day; a prime spreads them. */
const tokensOf = (app: number) => (app * 7919) % 10_007

/** Publishes the first night, with `apps` apps, and delivers the second night's usage. */
export async function publishFirstNight(dataDir: string, apps: number): Promise<void> {
  const numbers = Array.from({ length: apps }, (_, app) => app)
  const registry = numbers.map((app) => `${app + 1},App ${app + 1},public,,,2025-01-01`)
  register(dataDir, registry)
  const rows = numbers.map((app) => `${app + 1},${tokensOf(app)},${app % 13}`)
  deliver(dataDir, DAYS[0], rows)
  await publish(dataDir, FIRST_NIGHT)
  deliver(dataDir, DAYS[1], rows)
}

/** Expects the first night or both, each with all apps and their tokens; returns the published days. */
export async function expectNights(dataDir: string, apps: number): Promise<readonly string[]> {
  const sums = 'count(*) AS apps, sum(prompt_tokens) AS tokens'
  const found = await queryCurrent(dataDir, `SELECT day, ${sums} FROM app_daily GROUP BY day ORDER BY day`)
  const tokens = Array.from({ length: apps }, (_, app) => tokensOf(app)).reduce((sum, each) => sum + each, 0)
  const days = DAYS.slice(0, Math.max(1, found.length))
  expect(found).toEqual(days.map((day) => ({ day, apps: String(apps), tokens: String(tokens) })))
  return days
}

/** Runs the second night undisturbed and expects both; resolves to the run's messages. */
export async function expectSecondNight(dataDir: string, apps: number): Promise<string> {
  const { stderr } = await publish(dataDir, SECOND_NIGHT)
  expect(await expectNights(dataDir, apps)).toEqual(DAYS)
  return stderr
}
