/** CONTRACT 4.6: GET /status. */
import { afterAll, describe, expect, it } from 'vitest'
import { cronSchedule } from '../../../api/process/cron-schedule.ts'
import { isStale } from '../../../api/datasets/status.ts'
import { VERSION } from '../../../pipeline/contract/version.ts'
import { startApi } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const NOW = new Date('2026-11-20T12:00:00Z')

describe('GET /status', () => {
  it('shows the freshness of the dataset, without a key', async () => {
    const dataDir = folders.make()
    await publishSnapshot(dataDir, {
      asOf: new Date('2026-11-20T02:00:07Z'),
      dataThrough: '2026-11-19',
      firstDay: '2026-11-01',
      apps: [],
      daily: [],
      missing: ['2026-11-15', '2026-11-03'],
    })
    await using api = await startApi(dataDir, { clock: () => NOW })
    const response = await api.get('/status')
    expect(response.status).toBe(200)
    expect(response.headers.get('Cache-Control')).toBe('no-store')
    expect(await response.json()).toEqual({
      data: {
        version: VERSION,
        as_of: '2026-11-20T02:00:07Z',
        first_day: '2026-11-01',
        data_through: '2026-11-19',
        coverage: { complete: 17, partial: 0, restated: 0, missing: 2 },
        days_missing: ['2026-11-03', '2026-11-15'],
        days_partial: [],
        retracted: [],
        last_run: null,
        faults: [
          { thing: 'snapshots/20261120T020007Z', message: 'has no record and is left out of the list' },
        ],
        next_run_expected: '2026-11-21T02:00:00Z',
        stale: false,
      },
    })
  })

  it('answers before the first snapshot too', async () => {
    await using api = await startApi(folders.make(), { clock: () => NOW })
    const response = await api.get('/status')
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      data: {
        version: VERSION,
        as_of: null,
        first_day: null,
        data_through: null,
        coverage: null,
        days_missing: [],
        days_partial: [],
        retracted: [],
        last_run: null,
        faults: [],
        next_run_expected: '2026-11-21T02:00:00Z',
        stale: true,
      },
    })
  })
})

describe('isStale', () => {
  it.each([
    // The run of 20 November 02:00 publishes up to 19 November and has until 03:00.
    ['2026-11-19', '2026-11-20T12:00:00Z', false],
    ['2026-11-18', '2026-11-20T12:00:00Z', true],
    ['2026-11-18', '2026-11-20T01:00:00Z', false],
    ['2026-11-18', '2026-11-20T02:59:59Z', false],
    ['2026-11-18', '2026-11-20T03:00:00Z', true],
    ['2026-11-19', '2026-11-21T02:59:59Z', false],
    ['2026-11-19', '2026-11-21T03:00:00Z', true],
    [undefined, '2026-11-20T12:00:00Z', true],
  ])('of data through %s at %s is %s', (dataThrough, now, stale) => {
    expect(isStale(dataThrough, cronSchedule('0 2 * * *'), new Date(now))).toBe(stale)
  })

  it('expects from an hourly schedule a day more after its first run of the day, and not after later ones', () => {
    const hourly = cronSchedule('0 2-23 * * *')
    const isStaleAt = (time: string, through = '2026-11-18') =>
      isStale(through, hourly, new Date(`2026-11-20T${time}Z`))
    expect(['00:30:00', '02:59:59', '03:00:00', '23:59:59'].map((time) => isStaleAt(time))).toEqual([
      false,
      false,
      true,
      true,
    ])
    expect(isStaleAt('03:00:00', '2026-11-19')).toBe(false)
    expect(isStaleAt('23:59:59', '2026-11-19')).toBe(false)
  })

  it('expects from a weekly schedule only what its last run could publish', () => {
    const weekly = cronSchedule('0 2 * * 1')
    expect(isStale('2026-11-15', weekly, NOW)).toBe(false)
    expect(isStale('2026-11-14', weekly, NOW)).toBe(true)
  })
})
