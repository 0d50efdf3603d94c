/** CONTRACT 2: the form of keys, and their hash. */
import { expect, it } from 'vitest'
import {
  bearerToken,
  hashKey,
  hideKeys,
  isKeyForm,
  KEY_KINDS,
  makeKey,
} from '../../../api/accounts/credentials.ts'

it.each(KEY_KINDS)('makeKey names its kind, %s, and never repeats itself', (kind) => {
  const keys = Array.from({ length: 100 }, () => makeKey(kind))
  expect(new Set(keys).size).toBe(100)
  for (const key of keys) {
    expect(key.startsWith(`sk-${kind}-`)).toBe(true)
    expect(isKeyForm(key)).toBe(true)
  }
})

it('hashKey is the SHA-256 of the key in hexadecimal', () => {
  expect(hashKey('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})

it.each([
  ['Bearer abc', 'abc'],
  ['bearer abc', 'abc'],
  ['BEARER   abc  ', 'abc'],
  ['Basic abc', undefined],
  ['Bearer', undefined],
  ['Bearer ', undefined],
  ['Bearer a b', undefined],
  ['abc', undefined],
  ['', undefined],
])('bearerToken reads %j as %j', (header, token) => {
  expect(bearerToken(header)).toBe(token)
})

it('hideKeys replaces every key in a text and nothing else', () => {
  const [first, second] = [makeKey('inference'), makeKey('management')]
  const hidden = hideKeys(`/a/${first}?x="${second}" sk-other`)
  expect(hidden).toBe('/a/sk-inference-[hidden]?x="sk-management-[hidden]" sk-other')
})
