import { describe, expect, it } from 'vitest'
import { readStream, readWhole } from '../../../support/chat/chat-readers.ts'
import { chunk, completion } from '../../../support/chat/upstream.ts'

const part = (inner: unknown, more: Readonly<Record<string, unknown>> = {}) => ({
  index: 0,
  ...more,
  function: inner,
})
const first = (inner: unknown) => part(inner, { id: 'c1', type: 'function' })

const streamOf = (parts: readonly unknown[], finish = 'tool_calls') =>
  readStream([...parts.map((one) => chunk({ tool_calls: [one] })), chunk({}, finish)])

const READ = { id: 'c1', type: 'function', name: 'read_file', arguments: '{"a":1}', isNamedAtFirst: true }

describe('the tool calls of a stream', () => {
  it.each([
    [
      'with id and name in every part',
      [
        first({ name: 'read_file', arguments: '' }),
        first({ name: 'read_file', arguments: '{"a"' }),
        first({ name: 'read_file', arguments: ':1}' }),
      ],
    ],
    [
      'with the name in every part',
      [
        first({ name: 'read_file', arguments: '' }),
        part({ name: 'read_file', arguments: '{"a"' }),
        part({ name: 'read_file', arguments: ':1}' }),
      ],
    ],
    [
      'with the name once more at the end',
      [first({ name: 'read_file', arguments: '{"a":1}' }), part({ name: 'read_file', arguments: '' })],
    ],
    [
      'with the name in fragments',
      [first({ name: 'read_', arguments: '' }), part({ name: 'file' }), part({ arguments: '{"a":1}' })],
    ],
    [
      'with the name after the id',
      [first({ arguments: '' }), part({ name: 'read_file' }), part({ arguments: '{"a":1}' })],
    ],
    [
      'with the id after the name',
      [part({ name: 'read_file', arguments: '' }), first({ arguments: '{"a":1}' })],
    ],
    ['with a null type', [part({ name: 'read_file', arguments: '{"a":1}' }, { id: 'c1', type: null })]],
    ['with an empty type', [part({ name: 'read_file', arguments: '{"a":1}' }, { id: 'c1', type: '' })]],
    [
      'with an index of text',
      [
        part({ name: 'read_file', arguments: '{"a"' }, { id: 'c1', index: '0' }),
        part({ arguments: ':1}' }, { index: '0' }),
      ],
    ],
    ['with parsed arguments', [first({ name: 'read_file', arguments: { a: 1 } })]],
  ])('%s are one', (_name, parts) => {
    expect(streamOf(parts).calls).toEqual([READ])
  })

  it.each([
    ['null', null],
    ['missing', undefined],
    ['empty', ''],
    ['blank', ' '],
  ])('have the arguments {} once they are known to be %s', (_name, text) => {
    const parts = [first({ name: 'now', arguments: text })]
    const call = { ...READ, name: 'now', arguments: '{}' }
    expect(streamOf(parts).calls).toEqual([call])
    // If no finish says how the choice ended, [DONE] ends it.
    expect(readStream([chunk({ tool_calls: parts })]).calls).toEqual([call])
  })

  it('with empty arguments go out before those that follow', () => {
    const { calls, deltas } = streamOf([
      first({ name: 'now' }),
      part({ name: 'f', arguments: '{"x":1}' }, { index: 1, id: 'c2' }),
    ])
    expect(calls.map((call) => call.name)).toEqual(['now', 'f'])
    expect(calls.map((call) => call.arguments)).toEqual(['{}', '{"x":1}'])
    expect(JSON.stringify(deltas[0] ?? deltas)).toContain('"now"')
  })

  it.each([
    ['in parts of their own', ['{"p":1}', '{"q":2}']],
    ['in one part', ['{"p":1}{"q":2}']],
    ['in parts cut anywhere', ['{"p', '":1}{"q"', ':2}']],
    ['with a bracket in a text', ['{"p":"}{"}', ' {"q":"{"}']],
  ])('of one index without ids are two if a whole value is followed by another, %s', (_name, texts) => {
    const parts = [
      first({ name: 'glob', arguments: '' }),
      ...texts.map((text) => part({ name: '', arguments: text })),
    ]
    const { calls } = streamOf(parts)
    expect(calls.map(({ name }) => name)).toEqual(['glob', 'glob'])
    expect(calls.map((call) => JSON.parse(call.arguments))).toHaveLength(2)
    expect(calls.map(({ arguments: text }) => text).join('')).toBe(texts.join(''))
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
  })

  it('with ids that alternate are not new ones', () => {
    const again = (id: string, text: string) => part({ arguments: text }, { id })
    const { calls } = streamOf([
      part({ name: 'f', arguments: '{"x"' }, { id: 'a' }),
      part({ name: 'g', arguments: '{"y"' }, { id: 'b' }),
      again('a', ':1}'),
      again('b', ':2}'),
    ])
    expect(calls.map((call) => call.arguments)).toEqual(['{"x":1}', '{"y":2}'])
  })

  it('keep members beside them, such as signatures of thoughts', () => {
    const signature = { extra_content: { google: { thought_signature: 'sig' } } }
    const { deltas } = readStream([
      chunk({ tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }] }),
      chunk({ tool_calls: [signature] }),
      chunk({}, 'stop'),
    ])
    expect(deltas[1]).toEqual({ tool_calls: [{ ...signature, index: 0 }] })
  })

  it('of another type are passed on as they are', () => {
    const custom = { index: 0, id: 'c1', type: 'custom', custom: { name: 'f', input: 'x' } }
    expect(streamOf([custom]).deltas[0]).toMatchObject({ tool_calls: [custom] })
  })

  it('are an answer from their first part on, though it waits for its arguments', () => {
    expect(readStream([chunk({ tool_calls: [first({ name: 'now' })] })]).isWhole).toBe(true)
  })
})

describe('the tool calls of a whole reply', () => {
  it.each([
    ['null arguments', { id: 'c1', type: 'function', function: { name: 'now', arguments: null } }, '{}'],
    ['missing arguments', { id: 'c1', type: 'function', function: { name: 'now' } }, '{}'],
    ['empty arguments', { id: 'c1', type: 'function', function: { name: 'now', arguments: '' } }, '{}'],
    ['a null type', { id: 'c1', type: null, function: { name: 'now', arguments: '{"a":1}' } }, '{"a":1}'],
    ['an empty type', { id: 'c1', type: '', function: { name: 'now', arguments: '{"a":1}' } }, '{"a":1}'],
    ['parsed arguments', { id: 'c1', function: { name: 'now', arguments: { a: 1 } } }, '{"a":1}'],
  ])('with %s are made whole', (_name, call, text) => {
    const { message } = readWhole(completion(null, { choices: [{ message: { tool_calls: [call] } }] }))
    expect(message['tool_calls']).toEqual([
      { id: 'c1', type: 'function', function: { name: 'now', arguments: text } },
    ])
  })
})
