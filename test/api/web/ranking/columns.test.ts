/** The columns of the chart. */
import { describe, expect, it } from 'vitest'
import { sparkline, stackedColumns } from '../../../../api/web/charts.ts'
import { columnsOf } from '../../../../api/web/ranking/columns.ts'
import { eachDay } from '../../../../api/web/days.ts'

const bandOver = (start: string, end: string) => ({
  key: '0',
  name: 'App',
  daily: new Map(eachDay({ start, end }).map((day) => [day, 10n])),
})

describe('columnsOf', () => {
  it('gives each day a column in windows of up to 120 days', () => {
    const window = { start: '2026-01-01', end: '2026-04-30' }
    const { unit, columns } = columnsOf([bandOver('2026-01-01', '2026-04-30')], window, new Set())
    expect(unit).toBe('day')
    expect(columns).toHaveLength(120)
  })

  it('gives whole weeks a column in longer windows, up to the last day, and no part of a week', () => {
    const window = { start: '2025-01-01', end: '2025-12-31' }
    const { unit, columns } = columnsOf([bandOver(window.start, window.end)], window, new Set())
    expect(unit).toBe('week')
    expect(columns).toHaveLength(52)
    expect(columns[0]).toMatchObject({ start: '2025-01-02', end: '2025-01-08' })
    expect(columns.at(-1)?.end).toBe('2025-12-31')
    expect(new Set(columns.map(({ total }) => total))).toEqual(new Set([70n]))
  })

  it('names the range that a figure is the sum of', () => {
    const window = { start: '2025-01-01', end: '2025-12-31' }
    const bands = [bandOver(window.start, window.end)]
    const { html } = stackedColumns(bands, columnsOf(bands, window, new Set()).columns)
    expect(html).toContain('<title>2025-01-02 to 2025-01-08: \u2068App\u2069 70 of 70 tokens</title>')
  })

  it('tells missing days from days without usage', () => {
    const window = { start: '2026-01-01', end: '2026-01-03' }
    const bands = [bandOver('2026-01-01', '2026-01-01')]
    const { html } = stackedColumns(bands, columnsOf(bands, window, new Set(['2026-01-02'])).columns)
    expect(html).toContain('<title>2026-01-02: no data</title>')
    expect(html).toContain('<title>2026-01-03: \u2068App\u2069 0 of 0 tokens</title>')
  })

  it('says how much of a week is missing', () => {
    const window = { start: '2025-01-01', end: '2025-12-31' }
    const bands = [bandOver(window.start, window.end)]
    const missing = new Set(['2025-12-30', ...eachDay({ start: '2025-01-02', end: '2025-01-08' })])
    const { html } = stackedColumns(bands, columnsOf(bands, window, missing).columns)
    expect(html).toContain('<title>2025-01-02 to 2025-01-08: no data</title>')
    expect(html).toContain(
      '<title>2025-12-25 to 2025-12-31: \u2068App\u2069 70 of 70 tokens, 1 of 7 days missing</title>',
    )
  })
})

describe('sparkline', () => {
  it('is broken where a day is missing, and shows a day alone as a point', () => {
    const window = { start: '2026-01-01', end: '2026-01-04' }
    const { daily } = bandOver(window.start, window.end)
    const { html } = sparkline({ daily, window, missing: new Set(['2026-01-03']) }, 'App')
    const lines = [...html.matchAll(/points="([^"]*)"/g)].map(([, points]) => points?.split(' '))
    expect(lines).toHaveLength(2)
    expect(lines[0]).toHaveLength(2)
    expect(lines[1]).toEqual([lines[1]?.[0], lines[1]?.[0]])
  })
})
