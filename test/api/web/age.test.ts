/** The page's statement on the age of the data. */
import { expect, it } from 'vitest'
import { cronSchedule } from '../../../api/process/cron-schedule.ts'
import { ageOf } from '../../../api/web/age.ts'

// Runs at 02:00 and has an hour to publish.
const schedule = cronSchedule('0 2 * * *')
const NOW = new Date('2026-11-20T12:00:00Z')

it.each([
  ['current', 'last night, with yesterday', '2026-11-20T02:00:05Z', '2026-11-19'],
  ['ended', 'an hour ago, with old data', '2026-11-20T11:00:00Z', '2026-08-31'],
  ['ended', 'last night, with old data', '2026-11-20T02:00:00Z', '2026-08-31'],
  ['overdue', 'the night before', '2026-11-19T02:00:05Z', '2026-11-18'],
  ['overdue', 'just before the run was due', '2026-11-20T01:59:59Z', '2026-08-31'],
])('is %s if the snapshot was published %s', (age, _when, asOf, dataThrough) => {
  expect(ageOf({ asOf, dataThrough }, schedule, NOW)).toBe(age)
})

it('is not overdue within the time of the run', () => {
  const facts = { asOf: '2026-11-19T02:00:05Z', dataThrough: '2026-11-18' }
  expect(ageOf(facts, schedule, new Date('2026-11-20T02:59:00Z'))).toBe('current')
})
