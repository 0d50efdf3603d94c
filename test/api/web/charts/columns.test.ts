/** The columns of charts, their content, and their colours. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { inked } from '../../../../api/web/charts/colours.ts'
import { columnsOf } from '../../../../api/web/charts/columns.ts'
import { NARROW, WIDE } from '../../../../api/web/charts/frame.ts'
import { drawLines, lineSwatch } from '../../../../api/web/charts/lines.ts'
import { sparkline } from '../../../../api/web/charts/sparkline.ts'
import { boxSwatch, stackedColumns } from '../../../../api/web/charts/stacked.ts'
import { eachDay } from '../../../../api/web/days.ts'
import { REPOSITORY } from '../../../support/processes.ts'

const WHOLE = { missing: new Set<string>(), restated: new Set<string>() }

const bandOver = (start: string, end: string, tokens = 10n) => ({
  colour: '0',
  mark: 0,
  name: 'App',
  daily: new Map(eachDay({ start, end }).map((day) => [day, tokens])),
})

describe('columnsOf', () => {
  it('gives each day a column in windows of up to 120 days', () => {
    const window = { start: '2026-01-01', end: '2026-04-30' }
    const { unit, columns } = columnsOf([bandOver('2026-01-01', '2026-04-30')], window, WHOLE)
    expect(unit).toBe('day')
    expect(columns).toHaveLength(120)
  })

  it('gives whole weeks a column in longer windows, up to the last day, without partial weeks', () => {
    const window = { start: '2025-01-01', end: '2025-12-31' }
    const { unit, columns } = columnsOf([bandOver(window.start, window.end)], window, WHOLE)
    expect(unit).toBe('week')
    expect(columns).toHaveLength(52)
    expect(columns[0]).toMatchObject({ start: '2025-01-02', end: '2025-01-08' })
    expect(columns.at(-1)?.end).toBe('2025-12-31')
    expect(new Set(columns.map(({ total }) => total))).toEqual(new Set([70n]))
  })
})

describe('stackedColumns', () => {
  const draw = (window: { start: string; end: string }, bandEnd: string, special = WHOLE) =>
    stackedColumns(columnsOf([bandOver(window.start, bandEnd)], window, special), WIDE, 'Tokens').html

  it('names the range of a summed figure', () => {
    const window = { start: '2025-01-01', end: '2025-12-31' }
    expect(draw(window, window.end)).toContain(
      '<title>2025-01-02 to 2025-01-08: 70\n\u2068App\u2069 70</title>',
    )
  })

  it('distinguishes missing days from days without usage, and marks restated days', () => {
    const window = { start: '2026-01-01', end: '2026-01-03' }
    const special = { missing: new Set(['2026-01-02']), restated: new Set(['2026-01-01']) }
    const drawing = draw(window, '2026-01-01', special)
    expect(drawing).toContain('<title>2026-01-01 (restated): 10\n\u2068App\u2069 10</title>')
    expect(drawing).toContain('<title>2026-01-02 (no data)</title>')
    expect(drawing).toContain('<title>2026-01-03: 0\n\u2068App\u2069 0</title>')
    expect(drawing.match(/class="restated"/g)).toHaveLength(1)
    expect(drawing.match(/class="gap" d="M[^"]*z"/g)).toHaveLength(1)
  })

  it('shows how much of a week is missing', () => {
    const window = { start: '2025-01-01', end: '2025-12-31' }
    const missing = new Set(['2025-12-30', ...eachDay({ start: '2025-01-02', end: '2025-01-08' })])
    const drawing = draw(window, window.end, { ...WHOLE, missing })
    expect(drawing).toContain('<title>2025-01-02 to 2025-01-08 (no data)</title>')
    expect(drawing).toContain('<title>2025-12-25 to 2025-12-31 (1 of 7 days missing): 70\n')
  })

  it.each([
    [1n, ['0', '1', '2', '3', '4']],
    [6n, ['0', '2', '4', '6', '8']],
    [9_000_000_000_000_000_000n, ['0', '2500000T', '5000000T', '7500000T', '10000000T']],
  ])('has different figures on the axis of %s, all of them inside the frame', (tokens, expected) => {
    const window = { start: '2026-01-01', end: '2026-01-02' }
    for (const frame of [WIDE, NARROW]) {
      const columns = columnsOf([bandOver(window.start, window.end, tokens)], window, WHOLE)
      const { html } = stackedColumns(columns, frame, 'Tokens')
      const ticks = [...html.matchAll(/x="([\d.]+)"[^>]*dy="0.35em"[^>]*>\s*([^<]+)</g)]
      expect(ticks.map(([, , text = '']) => text.replaceAll(/[\s,]/g, ''))).toEqual(expected)
      for (const [, x, text = ''] of ticks) {
        expect(Number(x)).toBeGreaterThanOrEqual(text.trim().length * frame.letters * 0.6)
      }
    }
  })
})

it('lines are drawn over the same columns, and broken at days without data', () => {
  const window = { start: '2026-01-01', end: '2026-01-03' }
  const columns = columnsOf([bandOver(window.start, window.end)], window, {
    ...WHOLE,
    missing: new Set(['2026-01-02']),
  })
  expect(drawLines(columns, 'log', WIDE).html.match(/<polyline/g)).toHaveLength(2)
})

describe('sparkline', () => {
  it('is broken at missing days, and shows a single day as a point', () => {
    const window = { start: '2026-01-01', end: '2026-01-04' }
    const { daily } = bandOver(window.start, window.end)
    const { html } = sparkline({ daily, window, missing: new Set(['2026-01-03']) }, 'App')
    const lines = [...html.matchAll(/points="([^"]*)"/g)].map(([, points]) => points?.split(' '))
    expect(lines).toHaveLength(2)
    expect(lines[0]).toHaveLength(2)
    expect(lines[1]).toEqual([lines[1]?.[0], lines[1]?.[0]])
  })
})

describe('colours', () => {
  const looks = (...ids: bigint[]) =>
    inked(ids.map((id) => ({ id }))).map(({ colour, mark }) => [colour, mark])

  it('belong to an app in every chart, and stripes distinguish equal ones', () => {
    expect(looks(8n, 3n)).toEqual([
      ['8', 0],
      ['3', 0],
    ])
    expect(looks(21n, 3n, 8n, 34n)).toEqual([
      ['8', 0],
      ['3', 0],
      ['8', 1],
      ['8', 2],
    ])
    expect(looks(8n)).toEqual([['8', 0]])
  })

  const drawn = (...ids: bigint[]) => {
    const window = { start: '2026-01-01', end: '2026-01-02' }
    const apps = ids.map((id) => ({ ...bandOver(window.start, window.end), id, name: `App ${id}` }))
    return columnsOf(inked(apps), window, WHOLE)
  }

  it('the bands of seven apps with one colour are all filled differently, like their squares in the legend', () => {
    const columns = drawn(...Array.from({ length: 7 }, (_, index) => BigInt(13 * index)))
    const fills = (text: string) =>
      [...text.matchAll(/<(?:path|rect width="12")[^>]*?fill="url\(#(.*?)\)"/g)].map(([, id]) => id)
    const legend = columns.bands.map((band) => boxSwatch(band).html).join('')
    expect(new Set(fills(legend)).size).toBe(6)
    expect(fills(stackedColumns(columns, WIDE, 'Tokens').html)).toEqual(fills(legend))
    const stripes = [...legend.matchAll(/id="(.*?)"[^]*?rotate\((\d+)\)/g)]
    expect(stripes.map(([, id]) => id)).toEqual(fills(legend))
    expect(new Set(stripes.map(([, , angle]) => Number(angle) % 180)).size).toBe(6)
  })

  it('the lines of five apps with one colour have different dashes, like their samples in the legend', () => {
    const columns = drawn(13n, 26n, 39n, 52n, 65n)
    const dashes = (text: string) => [...text.matchAll(/stroke-dasharray="(.*?)"/g)].map(([, dash]) => dash)
    const legend = dashes(columns.bands.map((band) => lineSwatch(band).html).join(''))
    expect(new Set(legend).size).toBe(4)
    expect(dashes(drawLines(columns, 'linear', WIDE).html)).toEqual(legend)
  })

  const style = readFileSync(join(REPOSITORY, 'api', 'web', 'assets', 'page.css'), 'utf8')
  const pair = (name: string) => {
    const [, light = '', dark = ''] =
      new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(style) ?? []
    return { light, dark }
  }
  const names = [
    ...looks(...Array.from({ length: 13 }, (_, id) => BigInt(id))).map(([colour]) => colour),
    'others',
  ].map((colour) => `band-${colour}`)

  it.each(['light', 'dark'] as const)(
    'are distinguishable in the %s theme, also with red-green blindness',
    (theme) => {
      const colours = names.map((name) => linear(pair(name)[theme]))
      for (const seen of [(colour: Vector) => colour, deuteranopia, protanopia]) {
        const sensations = colours.map((colour) => oklab(seen(colour)))
        const distances = sensations.flatMap((one, index) =>
          sensations.slice(index + 1).map((other) => distance(one, other)),
        )
        // A difference of 0.02 is just visible.
        expect(Math.min(...distances)).toBeGreaterThan(0.1)
      }
      const ground = luminance(linear(pair('panel')[theme]))
      for (const colour of colours.slice(0, -1)) {
        const [dark = 0, light = 0] = [luminance(colour), ground].toSorted((one, other) => one - other)
        expect((light + 0.05) / (dark + 0.05)).toBeGreaterThan(3)
      }
    },
  )
})

type Vector = readonly [number, number, number]

/** A colour in linear light. */
function linear(colour: string): Vector {
  const part = (at: number) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return value <= 0.040_45 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }
  return [part(1), part(3), part(5)]
}

function times(rows: readonly [Vector, Vector, Vector], [red, green, blue]: Vector): Vector {
  const [first, second, third] = rows.map(([r, g, b]) => r * red + g * green + b * blue)
  return [first ?? 0, second ?? 0, third ?? 0]
}

/** Colours seen without one kind of cones (Machado, Oliveira and Fernandes 2009). */
function deuteranopia(colour: Vector): Vector {
  const rows = [
    [0.367_322, 0.860_646, -0.227_968],
    [0.280_085, 0.672_501, 0.047_413],
    [-0.011_82, 0.042_94, 0.968_881],
  ] as const
  return clamped(times(rows, colour))
}

function protanopia(colour: Vector): Vector {
  const rows = [
    [0.152_286, 1.052_583, -0.204_868],
    [0.114_503, 0.786_281, 0.099_216],
    [-0.003_882, -0.048_116, 1.051_998],
  ] as const
  return clamped(times(rows, colour))
}

function clamped([red, green, blue]: Vector): Vector {
  const clamp = (value: number) => Math.max(0, Math.min(1, value))
  return [clamp(red), clamp(green), clamp(blue)]
}

/** A colour in OKLab, where distances are perceptual. */
function oklab(colour: Vector): Vector {
  const cones = times(
    [
      [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
      [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
      [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
    ],
    colour,
  )
  const [long, medium, short] = [Math.cbrt(cones[0]), Math.cbrt(cones[1]), Math.cbrt(cones[2])]
  return times(
    [
      [0.210_454_255_3, 0.793_617_785, -0.004_072_046_8],
      [1.977_998_495_1, -2.428_592_205, 0.450_593_709_9],
      [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766],
    ],
    [long, medium, short],
  )
}

function distance(one: Vector, other: Vector): number {
  return Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2])
}

function luminance([red, green, blue]: Vector): number {
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
