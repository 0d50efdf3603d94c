import { expect, it } from 'vitest'
import { createOncePer } from '../../../api/process/once-per.ts'

it('makes a value anew when its unit of time is another, whichever way the clock goes', () => {
  const asked: number[] = []
  const valueAt = createOncePer(1000, (time) => {
    asked.push(time)
    return `at ${time}`
  })
  expect([0, 999, 1000, 1500, 900, 5000].map(valueAt)).toEqual([
    'at 0',
    'at 0',
    'at 1000',
    'at 1000',
    'at 900',
    'at 5000',
  ])
  expect(asked).toEqual([0, 1000, 900, 5000])
})
