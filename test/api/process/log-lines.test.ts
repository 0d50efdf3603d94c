import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { LogLines, type WriteCalls } from '../../../api/process/log-lines.ts'

const FD = 2
const MEBIBYTE = 1024 * 1024

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A target that takes `limit` bytes at a time, or fails while `fault` is set, and answers on demand. */
function place({ limit = Infinity }: { limit?: number } = {}) {
  const taken: string[] = []
  let waiting: (() => void) | undefined
  const state: { fault: Error | null; answerNow: boolean } = { fault: null, answerNow: true }
  const take = (bytes: Uint8Array) => {
    if (state.fault !== null) throw state.fault
    const part = bytes.subarray(0, limit)
    taken.push(Buffer.from(part).toString())
    return part.length
  }
  const calls: WriteCalls = {
    write(_fd, bytes, done) {
      const answer = () => {
        if (state.fault === null) done(null, take(bytes))
        else done(state.fault, 0)
      }
      if (state.answerNow) queueMicrotask(answer)
      else waiting = answer
    },
    writeSync: (_fd, bytes) => take(bytes),
  }
  return { taken, state, calls, answer: () => waiting?.() }
}

it('writes simultaneous lines together', async () => {
  const { taken, calls } = place()
  const lines = new LogLines(FD, calls)
  lines.write('a\n')
  lines.write('b\n')
  expect(taken).toEqual([])
  await vi.advanceTimersByTimeAsync(10)
  expect(taken).toEqual(['a\nb\n'])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(taken).toHaveLength(1)
})

it('keeps the order of lines that arrive during a write', async () => {
  const { taken, state, calls, answer } = place()
  state.answerNow = false
  const lines = new LogLines(FD, calls)
  const first = `${'x'.repeat(70_000)}\n`
  lines.write(first)
  lines.write('next\n')
  answer()
  await vi.advanceTimersByTimeAsync(10)
  answer()
  expect(taken).toEqual([first, 'next\n'])
})

it('continues after a partial write', async () => {
  const { taken, calls } = place({ limit: 3 })
  new LogLines(FD, calls).write('seven\n')
  await vi.advanceTimersByTimeAsync(10)
  expect(taken).toEqual(['sev', 'en\n'])
})

it('retries failed lines before later ones', async () => {
  const { taken, state, calls } = place()
  state.fault = new Error('ENOSPC')
  const lines = new LogLines(FD, calls)
  lines.write('a\n')
  await vi.advanceTimersByTimeAsync(5000)
  lines.write('b\n')
  state.fault = null
  await vi.advanceTimersByTimeAsync(1010)
  expect(taken.join('')).toBe('a\nb\n')
})

it('holds a limited number of lines, and logs how many were lost', async () => {
  const { taken, state, calls } = place()
  state.fault = new Error('ENOSPC')
  const lines = new LogLines(FD, calls)
  const line = `${'x'.repeat(1023)}\n`
  for (let count = 0; count < 4 * 1024; count += 1) lines.write(line)
  state.fault = null
  await vi.advanceTimersByTimeAsync(1010)
  const text = taken.join('')
  const [lost] = text.split('\n').slice(-2)
  expect(text.length).toBeGreaterThan(MEBIBYTE)
  expect(text.length).toBeLessThan(1.1 * MEBIBYTE)
  const kept = text.split(line).length - 1
  expect(JSON.parse(lost ?? '')).toMatchObject({ level: 'warn', lines: 4 * 1024 - kept })
})

it('writes the rest when the process ends, and does not block the end if nothing can be written', async () => {
  const good = place({ limit: 3 })
  const lines = new LogLines(FD, good.calls)
  lines.write('left\n')
  lines.finish()
  expect(good.taken).toEqual(['lef', 't\n'])

  const bad = place()
  bad.state.fault = new Error('EIO')
  const others = new LogLines(FD, bad.calls)
  others.write('left\n')
  expect(() => others.finish()).not.toThrow()
})
