import { describe, expect, it } from 'vitest'
import { readReceivedMembers, toMemberList, type Member } from '../../../../api/scim/groups/members.ts'

const ann = { value: 'ann', type: 'User', display: 'Ann' }
const bob = { value: 'bob', type: 'Group', display: 'Bob' }

function member(id: string, more: Partial<Member> = {}): Member {
  return { id, type: null, displayName: null, active: null, email: null, ...more }
}

function read(value: unknown): readonly Member[] | undefined {
  return readReceivedMembers(value).list?.read()
}

function digest(members: unknown): string | undefined {
  return readReceivedMembers(members).list?.digest
}

describe('readReceivedMembers', () => {
  it('reads the members sorted by id, each once, the last of those with one id', () => {
    const { list } = readReceivedMembers([bob, { value: 'ann', display: 'Former' }, ann, bob])
    expect(list?.count).toBe(2)
    expect(list?.read()).toEqual([
      member('ann', { type: 'User', displayName: 'Ann' }),
      member('bob', { type: 'Group', displayName: 'Bob' }),
    ])
  })

  it.each<[string, unknown, readonly Member[] | undefined]>([
    ['no members at all', undefined, undefined],
    ['members that are null', null, undefined],
    ['a word for the list', 'none', undefined],
    ['an empty list', [], []],
    ['one object without its brackets', { value: 'a' }, [member('a')]],
    ['ids alone', ['b', 'a', 7], [member('7'), member('a'), member('b')]],
    ['attributes that are missing or null', [{ value: 'a', type: null, display: null }], [member('a')]],
    ['a number for an id', [{ value: 42 }], [member('42')]],
    ['an address that ends in the id', [{ $ref: 'https://a.example/Users/x%20y' }], [member('x y')]],
    ['an address that ends in a slash', [{ $ref: 'https://a.example/Users/x/' }], [member('x')]],
    ['a number for a name', [{ value: 'a', display: 12 }], [member('a', { displayName: '12' })]],
    ['names of attributes in any case', [{ VALUE: 'a', Type: 'User' }], [member('a', { type: 'User' })]],
    [
      'control characters and halves of characters in a name',
      [{ value: 'a', display: 'tab\there \u0085 \ud800' }],
      [member('a', { displayName: 'tab here   \ufffd' })],
    ],
    [
      'a name without end',
      [{ value: 'a', display: 'n'.repeat(2000) }],
      [member('a', { displayName: 'n'.repeat(1024) })],
    ],
    [
      'a member that was taken out, as SCIM 1.1 marks it',
      [{ value: 'a', operation: 'delete' }, { value: 'b' }],
      [member('b')],
    ],
    ['a user who may not log in', [{ value: 'a', active: false }], [member('a', { active: false })]],
    ['a truth value as text', [{ value: 'a', active: 'True' }], [member('a', { active: true })]],
    ['an e-mail address', [{ value: 'a', email: 'a@b.example' }], [member('a', { email: 'a@b.example' })]],
    [
      'the primary one of several',
      [{ value: 'a', emails: [{ value: 'x@b.example' }, { value: 'a@b.example', primary: true }] }],
      [member('a', { email: 'a@b.example' })],
    ],
    [
      'the first where none is primary',
      [{ value: 'a', emails: ['x@b.example'] }],
      [member('a', { email: 'x@b.example' })],
    ],
  ])('reads %s', (_name, value, members) => {
    expect(read(value)).toEqual(members)
  })

  it.each([
    null,
    {},
    '',
    { value: '' },
    { value: 7.5 },
    { value: Number.MAX_SAFE_INTEGER + 2 },
    { value: 'x'.repeat(1025) },
    { value: '名'.repeat(342) },
    { value: 'a\u0000b' },
    { value: 'a\u009fb' },
    { value: 'a\ud800' },
    { $ref: 1 },
    { $ref: 'https://a.example/%zz' },
  ])('leaves out %j, which has no usable id', (entry) => {
    const { list, withoutId } = readReceivedMembers([ann, entry])
    expect(list?.read()).toEqual([member('ann', { type: 'User', displayName: 'Ann' })])
    expect(withoutId).toBe(1)
    // A list without a usable entry does not mean that there are no members.
    expect(readReceivedMembers([entry, entry])).toMatchObject({ list: null, withoutId: 2 })
  })

  it('counts attributes of a wrong type', () => {
    expect(readReceivedMembers([{ value: 'a', display: {}, type: [] }])).toMatchObject({ oddAttributes: 2 })
    expect(readReceivedMembers('none')).toMatchObject({ oddAttributes: 1 })
  })
})

describe('the digest of a list of members', () => {
  it('is the same in any order, and with or without a malformed member', () => {
    expect(digest([bob, ann])).toBe(digest([ann, bob]))
    expect(digest([{ value: 'a', display: 'x\ty' }, ann])).toBe(digest([ann, { value: 'a', display: 'x y' }]))
    expect(digest([ann])).toBe(toMemberList([member('ann', { type: 'User', displayName: 'Ann' })]).digest)
  })

  it.each([
    { members: [] },
    { members: [bob] },
    { members: [ann, bob] },
    { members: [{ ...ann, display: 'Anne' }] },
    { members: [{ ...ann, type: undefined }] },
    { members: [{ ...ann, active: true }] },
    { members: [{ ...ann, email: 'a@b.example' }] },
    { members: [{ value: 'ann', display: 'User', type: 'Ann' }] },
  ])('differs from the digest of $members', ({ members }) => {
    expect(digest(members)).not.toBe(digest([ann]))
  })
})
