import { describe, expect, it } from 'vitest'
import { createSlots, HeldSlot } from '../../../../api/scim/jobs/slots.ts'

/** A pause that the test ends. */
function pause() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { wait: () => promise, end: resolve }
}

/** Lets everything that is ready continue. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

function held(count: number) {
  const slots = createSlots(count)
  let freed = 0
  expect(slots.tryTake()).toBe(true)
  return { slots, slot: new HeldSlot(slots, () => (freed += 1)), freed: () => freed }
}

describe('the slot of a sync', () => {
  it('is free while the sync pauses, and the sync waits for it afterwards', async () => {
    const { slots, slot, freed } = held(1)
    const { wait, end } = pause()
    let isOver = false
    const pausing = slot.whilePausing(wait).then(() => (isOver = true))
    expect(freed()).toBe(1)
    expect(slots.tryTake()).toBe(true)
    expect(slots.tryTake()).toBe(false)
    end()
    await settled()
    expect(isOver).toBe(false)
    slots.release()
    await pausing
    expect(slots.tryTake()).toBe(false)
  })

  it('is shared by all requests of a sync that pause at the same time', async () => {
    const { slots, slot, freed } = held(2)
    const pauses = [pause(), pause(), pause()]
    const pausing = pauses.map(({ wait }) => slot.whilePausing(wait))
    expect(freed()).toBe(1)
    for (const { end } of pauses) end()
    await Promise.all(pausing)
    expect([slots.tryTake(), slots.tryTake()]).toEqual([true, false])
  })

  it('is given back once, however the sync ends', async () => {
    const { slots, slot } = held(1)
    const { wait, end } = pause()
    const pausing = slot.whilePausing(wait)
    slot.end()
    end()
    await pausing
    slot.end()
    expect([slots.tryTake(), slots.tryTake()]).toEqual([true, false])
  })

  it('goes to the next waiter if a sync ended while it waited', async () => {
    const { slots, slot } = held(1)
    const { wait, end } = pause()
    const pausing = slot.whilePausing(wait)
    expect(slots.tryTake()).toBe(true)
    end()
    await settled()
    slot.end()
    slots.release()
    await pausing
    expect(slots.tryTake()).toBe(true)
  })

  it('is free again after a pause that fails', async () => {
    const { slots, slot } = held(1)
    await expect(slot.whilePausing(() => Promise.reject(new Error('stopped')))).rejects.toThrow('stopped')
    slot.end()
    expect(slots.tryTake()).toBe(true)
  })
})
