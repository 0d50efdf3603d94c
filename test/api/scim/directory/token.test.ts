import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { SyncFailure } from '../../../../api/scim/failures.ts'
import { readToken } from '../../../../api/scim/directory/token.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

function tokenFile(text: string, mode: number): { kind: 'file'; source: string } {
  const source = join(folders.make(), 'token')
  writeFileSync(source, text)
  chmodSync(source, mode)
  return { kind: 'file', source }
}

function faultOf(read: () => string): string {
  try {
    read()
  } catch (error) {
    if (error instanceof SyncFailure && error.failure === 'token_unavailable') return error.message
    throw error
  }
  throw new Error('No fault')
}

describe('readToken', () => {
  it('takes a variable or a private file, without its final line break', () => {
    expect(readToken({ kind: 'env', source: 'NAME' }, { NAME: 'a.b-c\n' })).toBe('a.b-c')
    expect(readToken(tokenFile('a.b-c\n', 0o600), {})).toBe('a.b-c')
    expect(readToken(tokenFile('a.b-c', 0o400), {})).toBe('a.b-c')
  })

  it.each([0o640, 0o604, 0o660, 0o666])('rejects a file of mode %o and names the remedy', (mode) => {
    expect(faultOf(() => readToken(tokenFile('secret', mode), {}))).toContain('chmod 0600')
  })

  it.each([undefined, '', ' \n'])('names the variable that holds no token: %j', (value) => {
    const environment = value === undefined ? {} : { NAME: value }
    expect(faultOf(() => readToken({ kind: 'env', source: 'NAME' }, environment))).toContain(
      'NAME holds no token',
    )
  })

  it('rejects a token that is invalid in a header, and does not repeat it', () => {
    for (const text of ['secret one', 'secret\r\nHost: x', 'secret\u00e9']) {
      expect(faultOf(() => readToken({ kind: 'env', source: 'NAME' }, { NAME: text }))).not.toContain(
        'secret',
      )
    }
  })

  it('names an unreadable file', () => {
    expect(faultOf(() => readToken({ kind: 'file', source: '/no/such/file' }, {}))).toContain('/no/such/file')
  })
})
