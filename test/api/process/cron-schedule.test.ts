/** CONTRACT 4.6: the next run that /status expects. */
import { describe, expect, it } from 'vitest'
import { cronSchedule } from '../../../api/process/cron-schedule.ts'

const cases: [expression: string, time: string, last: string, next: string][] = [
  ['0 2 * * *', '2026-11-20T01:59:59Z', '2026-11-19T02:00:00Z', '2026-11-20T02:00:00Z'],
  ['0 2 * * *', '2026-11-20T02:00:00Z', '2026-11-20T02:00:00Z', '2026-11-21T02:00:00Z'],
  ['0 2 * * *', '2026-12-31T23:59:59Z', '2026-12-31T02:00:00Z', '2027-01-01T02:00:00Z'],
  ['*/20 2,14 * * *', '2026-11-20T02:30:00Z', '2026-11-20T02:20:00Z', '2026-11-20T02:40:00Z'],
  ['*/20 2,14 * * *', '2026-11-20T02:40:00Z', '2026-11-20T02:40:00Z', '2026-11-20T14:00:00Z'],
  ['30,10 14,2 * * *', '2026-11-20T02:20:00Z', '2026-11-20T02:10:00Z', '2026-11-20T02:30:00Z'],
  ['30 0 2 * * *', '2026-11-20T02:00:29Z', '2026-11-19T02:00:30Z', '2026-11-20T02:00:30Z'],
  ['0 2 * * 1', '2026-11-20T12:00:00Z', '2026-11-16T02:00:00Z', '2026-11-23T02:00:00Z'],
  ['0 2 29 2 *', '2026-11-20T12:00:00Z', '2024-02-29T02:00:00Z', '2028-02-29T02:00:00Z'],
  ['0 2 29 2 1', '2026-11-20T12:00:00Z', '2016-02-29T02:00:00Z', '2044-02-29T02:00:00Z'],
  // The longest gap: a weekday comes back to the leap day after 28 years.
  ['0 2 29 2 1', '2016-02-29T02:00:00Z', '2016-02-29T02:00:00Z', '2044-02-29T02:00:00Z'],
  ['0 2 L * *', '2026-11-20T12:00:00Z', '2026-10-31T02:00:00Z', '2026-11-30T02:00:00Z'],
]

describe('cronSchedule', () => {
  it.each(cases)('of %s at %s: last %s, next %s', (expression, time, last, next) => {
    const schedule = cronSchedule(expression)
    expect(schedule.last(new Date(time))).toEqual(new Date(last))
    expect(schedule.next(new Date(time))).toEqual(new Date(next))
  })
  it('finds no time for an expression that never matches', () => {
    // The first Monday of a month is at the latest its seventh day.
    const schedule = cronSchedule('0 2 31 * 1#1')
    expect(schedule.last(new Date('2026-11-20T12:00:00Z'))).toBeUndefined()
    expect(schedule.next(new Date('2026-11-20T12:00:00Z'))).toBeUndefined()
  })
})
