import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { niceCeiling } from '../../../api/web/charts/frame.ts'
import { html, isolated, raw } from '../../../api/web/html.ts'
import { compact, exact, share } from '../../../api/web/numbers.ts'

describe('html', () => {
  it('escapes inserted values, joins lists, and drops null', () => {
    const name = `<b title='x'>"&"`
    expect(html`<p>${name}${null}${undefined}${[html`<i>${1}</i>`, 2n]}</p>`.html).toBe(
      '<p>&lt;b title=&#39;x&#39;&gt;&quot;&amp;&quot;<i>1</i>2</p>',
    )
  })

  it('lets no untrusted text open a tag or leave an attribute', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(html`${text}`.html).not.toMatch(/[<>"']|(?![\t\n])\p{Cc}/u)
      }),
    )
  })

  it('replaces control characters, but not white space', () => {
    expect(html`${'a\u0000b\u001b[31m\tc\n'}`.html).toBe('a\ufffdb\ufffd[31m\tc\n')
  })

  it('ends the direction of a name with the name', () => {
    expect(isolated('\u202egnp.exe\u2069')).toBe('\u2068gnp.exe\u2069')
  })

  it('takes raw HTML as it is', () => {
    expect(html`${raw('<br>')}`.html).toBe('<br>')
  })
})

describe('figures', () => {
  it('are short in the table, and exact beside it', () => {
    expect(compact(48_278_728_110_234n)).toBe('48.3T')
    expect(exact(48_278_728_110_234n)).toBe('48,278,728,110,234')
    expect(compact(2n ** 70n)).toBe('1,180,000,000T')
  })

  it.each([
    [1n, 4n, '25.0%'],
    [1n, 1n, '100.0%'],
    [1n, 100_000n, '<0.1%'],
    [0n, 5n, '0.0%'],
    [0n, 0n, '–'],
  ])('%s of %s is %s', (part, whole, expected) => {
    expect(share(part, whole)).toBe(expected)
  })

  it('of an axis are round, and reach above the highest column', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10n ** 30n }), (value) => {
        expect(niceCeiling(value)).toBeGreaterThanOrEqual(value)
        expect(niceCeiling(value)).toBeLessThanOrEqual(value < 4n ? 4n : 2n * value)
      }),
    )
    expect(niceCeiling(6_300_000_000_000n)).toBe(8_000_000_000_000n)
  })
})
