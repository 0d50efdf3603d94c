/** CONTRACT 4.1: the window that defaults and clamps give. */
import { describe, expect, it } from 'vitest'
import { resolveWindow } from '../../../api/datasets/window.ts'

describe('resolveWindow', () => {
  it.each([
    ['30 days ending on the last day', {}, '2026-11-19', ['2026-10-21', '2026-11-19']],
    ['30 days before a given end', { end_date: '2026-03-01' }, '2026-11-19', ['2026-01-31', '2026-03-01']],
    [
      'a given start to the last day',
      { start_date: '2026-11-01' },
      '2026-11-19',
      ['2026-11-01', '2026-11-19'],
    ],
    [
      'an end after the data clamped back',
      { end_date: '2027-01-01' },
      '2026-11-19',
      ['2026-10-21', '2026-11-19'],
    ],
    [
      'a start before the floor clamped',
      { start_date: '2020-02-29' },
      '2026-11-19',
      ['2025-01-01', '2026-11-19'],
    ],
    [
      'a default start clamped to the floor',
      { end_date: '2025-01-10' },
      '2026-11-19',
      ['2025-01-01', '2025-01-10'],
    ],
    [
      'the floor alone',
      { start_date: '2024-01-01', end_date: '2025-01-01' },
      '2026-11-19',
      ['2025-01-01', '2025-01-01'],
    ],
    ['a young dataset', {}, '2025-01-03', ['2025-01-01', '2025-01-03']],
    [
      'one day',
      { start_date: '2026-11-19', end_date: '2026-11-19' },
      '2026-11-19',
      ['2026-11-19', '2026-11-19'],
    ],
    ['a leap day', { end_date: '2028-03-29' }, '2028-12-31', ['2028-02-29', '2028-03-29']],
    ['7 days', { days: 7 }, '2026-11-19', ['2026-11-13', '2026-11-19']],
    [
      '7 days before a given end',
      { days: 7, end_date: '2026-03-01' },
      '2026-11-19',
      ['2026-02-23', '2026-03-01'],
    ],
    [
      '7 days clamped to the floor',
      { days: 7, end_date: '2025-01-03' },
      '2026-11-19',
      ['2025-01-01', '2025-01-03'],
    ],
  ])('gives %s', (_what, asked, dataThrough, [start, end]) => {
    expect(resolveWindow(asked, dataThrough)).toEqual({ start, end })
  })

  it('rejects a start after the data with a message that names both days', () => {
    expect(() => resolveWindow({ start_date: '2026-12-01' }, '2026-11-19')).toThrow(
      /"start_date" .*sent "2026-12-01", allowed: a date not after the end, 2026-11-19/,
    )
  })
})
