/** CONTRACT 9: messages of the service at a terminal. */
import { expect, it } from 'vitest'
import { createLog } from '../../../api/process/log.ts'
import { plainLine } from '../../../api/process/log.ts'

it('a line for people has time, level, message and fields, without control characters of clients', () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line: string) => void lines.push(plainLine(line)) })
  log.info({ origin: 'http://127.0.0.1:3000', status: 200, path: '/\u001B[2J' }, 'listening')
  log.error({ err: new Error('broken') }, 'request failed')
  expect(lines[0]).toMatch(
    /^\d\d:\d\d:\d\d info {2}listening origin=http:\/\/127\.0\.0\.1:3000 status=200 path=\/\uFFFD\[2J\n$/,
  )
  expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d error request failed\n {2}Error: broken\n[^]*\n$/)
})
