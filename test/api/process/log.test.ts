import { describe, expect, it } from 'vitest'
import { createLog } from '../../../api/process/log.ts'

/** A log of this level, and what it wrote. */
function logAt(level: Parameters<typeof createLog>[0]) {
  const lines: string[] = []
  return { log: createLog(level, { write: (line) => void lines.push(line) }), lines }
}

const FIELDS = { path: '/a"b\\c\n', status: 200, ms: 1.5, key_id: null, aborted: true, name: 'Ä \u0001' }
const MEMBERS = JSON.stringify(FIELDS).slice(1, -1)

describe('Log.infoLine', () => {
  it('writes what info does', () => {
    const { log, lines } = logAt('info')
    log.info(FIELDS, 'request')
    log.infoLine(MEMBERS, 'request')
    const [usual, direct] = lines.map((line) => line.replace(/"time":"[\dTZ:.-]{24}"/, '"time":""'))
    expect(direct).toBe(usual)
    expect(usual).toContain('"time":""')
  })

  it('writes nothing where the level is a higher one', () => {
    const { log, lines } = logAt('warn')
    log.infoLine(MEMBERS, 'request')
    expect(lines).toEqual([])
  })
})
