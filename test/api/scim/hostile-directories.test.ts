/** CONTRACT 5: directories that send too much are cut off, and the service goes on. */
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import type { Failure } from '../../../api/scim/failures.ts'
import { SYNC_LIMITS, type SyncLimits } from '../../../api/scim/client.ts'
import { describeDirectories, useAccounts } from '../../support/scim/directory-case.ts'
import {
  manyGroups,
  ofList,
  startDirectory,
  type Quirk,
  type Reply,
} from '../../support/scim/faulty-directory.ts'

const MIB = 1024 * 1024
/** Small limits, so that a test sends little. */
const LIMITS: SyncLimits = {
  ...SYNC_LIMITS,
  responseBytes: MIB / 2,
  responseElements: 40_000,
  groups: 1000,
  members: 5000,
  pages: 50,
  tries: 1,
}

const GOOD = '{"totalResults":1,"Resources":[{"id":"1","displayName":"A"'

/** Sends `head`, then repeats `part` until `bytes` are sent or the client hangs up; then `tail`. */
const sends = (head: string, part: string, { bytes = 1e12, tail = '' } = {}): Reply => ({
  send(response) {
    response.writeHead(200, { 'Content-Type': 'application/scim+json' }).write(head)
    pump(response, part, { bytes, tail })
  },
})

function pump(response: ServerResponse, part: string, left: { bytes: number; tail: string }): void {
  const chunk = part.repeat(Math.ceil(65_536 / part.length))
  let sent = 0
  const go = () => {
    while (sent < left.bytes && !response.destroyed) {
      sent += chunk.length
      if (!response.write(chunk)) return void response.once('drain', go)
    }
    response.end(left.tail)
  }
  go()
}

const packed: Reply = {
  send: (response) =>
    void response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(Buffer.alloc(20 * MIB, ' '))),
}

const largeError: Reply = {
  send: (response) => pump(response.writeHead(400), ' ', { bytes: 4 * MIB, tail: '{}' }),
}

/** Small pages that together have too many members. */
const manyMembers: Quirk = ({ query }) => {
  const first = Number(query.get('startIndex') ?? 1)
  const members = Array.from({ length: 2000 }, (_, index) => ({ value: `${index}` }))
  const groups = [0, 1].map((index) => ({ id: `${first + index}`, displayName: 'A', members }))
  return { body: { totalResults: 10_000, Resources: groups } }
}

const endlessCursors: Quirk = ({ before }) => ({
  body: { Resources: [{ id: `${before}`, displayName: 'A' }], nextCursor: `cursor-${before}` },
})

const HOSTILE: Readonly<Record<string, readonly [Quirk, Failure]>> = {
  'blanks without end': [() => sends('', ' '), 'directory_too_large'],
  'few bytes that become many': [() => packed, 'directory_too_large'],
  'nothing but opening brackets': [() => sends('{"Resources":', '['), 'directory_too_large'],
  'lists in lists, all of them closed': [
    () => sends(`${GOOD},"x":${'['.repeat(10_000)}`, ']', { bytes: 1, tail: '' }),
    'directory_too_large',
  ],
  'empty objects beside a good group': [
    () => sends(`${GOOD}}],"x":[{}`, ',{}', { bytes: 300_000, tail: ']}' }),
    'directory_too_large',
  ],
  'a group with members without end': [
    () => sends(`${GOOD},"members":[{"value":"0"}`, ',{"value":"1"}'),
    'directory_too_large',
  ],
  'a text without end': [() => sends(`${GOOD},"x":"`, 'x'), 'directory_too_large'],
  'a number without end': [() => sends(`${GOOD},"x":`, '1'), 'directory_too_large'],
  'more members than a sync may have': [manyMembers, 'directory_too_large'],
  'cursors without end': [endlessCursors, 'directory_too_large'],
  'an error of many bytes': [() => largeError, 'directory_invalid_response'],
}

const accounts = useAccounts({ sync: { limits: LIMITS } })
const cases = Object.entries(HOSTILE).map(([name, [reply, ends]]) => {
  return [`sends ${name}`, { quirk: ofList(reply), ends }] as const
})
describeDirectories(accounts, {
  ...Object.fromEntries(cases),
  'has more groups than a sync may have': { groups: manyGroups(1001), ends: 'directory_too_large' },
})

it('pages with too many bytes are requested in smaller parts, down to one group', async () => {
  const large = { displayName: 'x'.repeat(MIB / 5) }
  const groups = manyGroups(7).map((group) => ({ ...group, ...large }))
  await using directory = await startDirectory(groups)
  const account = await accounts.connect(directory.url)
  expect(await account.sync()).toMatchObject({ status: 'succeeded', synced_groups: 7 })
  const counts = directory.asked.map(({ query }) => query.get('count')).filter((count) => count !== null)
  expect([...new Set(counts)]).toEqual(['100', '25', '5', '1'])
})
