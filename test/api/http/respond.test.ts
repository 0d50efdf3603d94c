/** CONTRACT 3: a reply that cannot be sent any more. */
import { describe, expect, it } from 'vitest'
import { jsonText } from '../../../api/http/respond.ts'

describe('jsonText', () => {
  it('writes integers of any size with all their digits', () => {
    expect(jsonText({ a: [1n, 2n ** 70n], b: -(2n ** 63n), c: 1.5, d: null })).toBe(
      '{"a":[1,1180591620717411303424],"b":-9223372036854775808,"c":1.5,"d":null}',
    )
  })
})
