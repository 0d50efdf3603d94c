/** Directories that send too much: each is cut off. */
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { SyncLimits } from '../../../api/scim/directory/limits.ts'
import type { Failure } from '../../../api/scim/failures.ts'
import { startDirectory, type Quirk, type Reply } from '../../support/scim/faulty-directory.ts'
import { failureOf, ofList } from '../../support/scim/pull.ts'

const MIB = 1024 * 1024
/** A hundredth of the default limits. */
const LIMITS: Partial<SyncLimits> = {
  responseBytes: MIB,
  responseElements: 40_000,
  memoryBytes: 2 * MIB,
  membersPerGroup: 1000,
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
    void response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(Buffer.alloc(50 * MIB, ' '))),
}

const largeError: Reply = {
  send: (response) => pump(response.writeHead(400), ' ', { bytes: 4 * MIB, tail: '{}' }),
}

/** Pages within every limit that together are too much. */
const longTexts: Quirk = ({ query }) => {
  const first = Number(query.get('startIndex') ?? 1)
  const members = Array.from({ length: 90 }, (_, index) => ({
    value: `${index}${'v'.repeat(900)}`,
    display: 'd'.repeat(1000),
  }))
  const groups = Array.from({ length: 5 }, (_, index) => ({
    id: `${first + index}`,
    displayName: 'A',
    members,
  }))
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
  'empty objects in place of groups': [
    () => sends('{"Resources":[{}', ',{}', { bytes: 500_000, tail: ']}' }),
    'directory_too_large',
  ],
  'empty objects beside a good group': [
    () => sends(`${GOOD}}],"x":[{}`, ',{}', { bytes: 500_000, tail: ']}' }),
    'directory_too_large',
  ],
  'empty objects inside of a good group': [
    () => sends(`${GOOD},"x":[{}`, ',{}', { bytes: 500_000, tail: ']}]}' }),
    'directory_too_large',
  ],
  'a group with attributes without end': [() => sends(GOOD, ',"x":0'), 'directory_too_large'],
  'a group with members without end': [
    () => sends(`${GOOD},"members":[{"value":"0"}`, ',{"value":"1"}'),
    'directory_too_large',
  ],
  'small groups without end': [() => sends('{"Resources":[{"id":"0"}', ',{"id":"1"}'), 'directory_too_large'],
  'a text without end': [() => sends(`${GOOD},"x":"`, 'x'), 'directory_too_large'],
  'a number without end': [() => sends(`${GOOD},"x":`, '1'), 'directory_too_large'],
  'long texts over many pages': [longTexts, 'directory_too_large'],
  'cursors without end': [endlessCursors, 'directory_too_large'],
  'an error of many bytes': [() => largeError, 'directory_invalid_response'],
}

describe.each(Object.entries(HOSTILE))('a directory that sends %s', (_name, [quirk, failure]) => {
  it(`ends as ${failure}`, async () => {
    await using directory = await startDirectory([], { quirk: ofList(quirk) })
    expect(await failureOf(directory, { limits: LIMITS })).toBe(failure)
  })
})
