/** CONTRACT 4.6: names come from strangers, and pages show them as text. */
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { html } from '../../../api/web/html.ts'

it('no untrusted text opens a tag, leaves an attribute or keeps a control character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(html`${text}`.html).not.toMatch(/[<>"']|(?![\t\n])\p{Cc}/u)
    }),
  )
})
