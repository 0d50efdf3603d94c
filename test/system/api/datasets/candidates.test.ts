/**
 * CONTRACT 4.2: thousands of random windows over data of every shape: the candidates give the page of all apps, or report that they
 * cannot.
 */
import { expect, it } from 'vitest'
import { LONG } from '../../../support/long.ts'
import { expectSamePages, makeShaped, SHAPES, SIZES } from '../../../support/pipeline/shaped-snapshot.ts'

const WINDOWS = 40

it.each(Object.entries(SHAPES))(
  'pages over data that are %s are the pages of all apps',
  LONG,
  async (name, shape) => {
    let proven = 0
    for (const size of SIZES) {
      const snapshot = await makeShaped(shape, size.apps + name.length, size)
      proven += await expectSamePages(snapshot, WINDOWS)
      await snapshot.close()
    }
    expect(proven).toBeGreaterThan(name === 'steep' ? WINDOWS / 4 : -1)
  },
)
