/** Two nights over many apps: the first is published, the second is left for a test to disturb. */
import { expect } from 'vitest'
import { publish, queryCurrent, writeRaw } from './nightly.ts'

const DAYS = ['2026-01-05', '2026-01-06'] as const
const FIRST_NIGHT = '2026-01-06T02:00:00Z'

/** Time of the second night's run. */
export const SECOND_NIGHT = '2026-01-07T02:00:00Z'

/** Publishes the first night, with `apps` apps, and delivers the second night's usage. */
export async function publishFirstNight(dataDir: string, apps: number): Promise<void> {
  const registry = Array.from({ length: apps }, (_, app) => `${app + 1},App ${app + 1},public,2025-01-01`)
  writeRaw(dataDir, 'apps/registry.csv', `app_id,app_name,visibility,updated_at\n${registry.join('\n')}\n`)
  deliver(dataDir, DAYS[0], apps)
  await publish(dataDir, FIRST_NIGHT)
  deliver(dataDir, DAYS[1], apps)
}

function deliver(dataDir: string, day: string, apps: number): void {
  const rows = Array.from(
    { length: apps },
    (_, app) => `${day},${app + 1},${(app * 7919) % 10_007},${app % 13}`,
  )
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
}

/** Runs the second night undisturbed and expects every app on both days; resolves to the run's messages. */
export async function expectSecondNight(dataDir: string, apps: number): Promise<string> {
  const { stderr } = await publish(dataDir, SECOND_NIGHT)
  expect(
    await queryCurrent(dataDir, 'SELECT day, count(*) AS apps FROM app_daily GROUP BY day ORDER BY day'),
  ).toEqual(DAYS.map((day) => ({ day, apps: String(apps) })))
  return stderr
}
