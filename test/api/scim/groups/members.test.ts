import { describe, expect, it } from 'vitest'
import { memberListSchema, toMemberList } from '../../../../api/scim/groups/members.ts'

const ann = { value: 'ann', type: 'User', display: 'Ann' }
const bob = { value: 'bob', type: 'Group', display: 'Bob' }

function digest(members: unknown): string {
  return memberListSchema.parse(members).digest
}

describe('memberListSchema', () => {
  it.each([
    { members: 'ann', fault: 'expected array' },
    { members: [ann, null], fault: 'expected object' },
    { members: [ann, {}], fault: 'neither value nor $ref' },
    { members: [ann, { value: '' }], fault: 'text of 1 to 1024 bytes' },
    { members: [ann, { value: 'x'.repeat(1025) }], fault: 'text of 1 to 1024 bytes' },
    { members: [ann, { value: '名'.repeat(342) }], fault: 'text of 1 to 1024 bytes' },
    { members: [ann, { value: 'a\u0000b' }], fault: 'none of its characters a control character' },
    { members: [ann, { value: 'a\u009fb' }], fault: 'none of its characters a control character' },
    { members: [ann, { value: 'a\ud800' }], fault: 'text of 1 to 1024 bytes' },
    { members: [ann, { value: 'cid', type: 1 }], fault: 'expected string' },
    { members: [ann, { value: 'cid', display: {} }], fault: 'expected string' },
    { members: [ann, { value: 'cid', $ref: 1 }], fault: 'expected string' },
  ])('refuses $members', ({ members, fault }) => {
    const { success, error } = memberListSchema.safeParse(members)
    expect(success).toBe(false)
    expect(error?.message).toContain(fault)
  })

  it('tells the place of a fault', () => {
    const { error } = memberListSchema.safeParse([ann, bob, { value: 7.5 }])
    expect(error?.issues.map(({ path }) => path.slice(0, 1))).toEqual([[2]])
  })

  it('tells a few faults of a list that is nothing but faults', () => {
    const looked = new Set<number>()
    const faulty = Array.from({ length: 1000 }, (_, index) => ({
      get value() {
        looked.add(index)
        return ''
      },
    }))
    expect(memberListSchema.safeParse(faulty).error?.issues).toHaveLength(6)
    expect(looked.size).toBe(6)
  })

  it('reads the members sorted by id, each once, the last of those with one id', () => {
    const { count, read } = memberListSchema.parse([bob, { value: 'ann', display: 'Former' }, ann, bob])
    expect(count).toBe(2)
    expect(read()).toEqual([
      { id: 'ann', type: 'User', displayName: 'Ann' },
      { id: 'bob', type: 'Group', displayName: 'Bob' },
    ])
  })

  it('reads what is missing or null as null', () => {
    const { read } = memberListSchema.parse([{ value: 'a' }, { value: 'b', type: null, display: null }])
    expect(read()).toEqual([
      { id: 'a', type: null, displayName: null },
      { id: 'b', type: null, displayName: null },
    ])
  })

  it('mends names, and takes numbers and addresses for ids', () => {
    const { read } = memberListSchema.parse([
      { value: 7, display: 'tab\there \u0085 \ud800' },
      { $ref: 'https://a.example/Users/x%20y', display: '"quoted" \\ 名前 😀' },
      { value: 'long', display: 'n'.repeat(2000) },
    ])
    expect(read()).toEqual([
      { id: '7', type: null, displayName: 'tab here   \ufffd' },
      { id: 'long', type: null, displayName: 'n'.repeat(1024) },
      { id: 'x y', type: null, displayName: '"quoted" \\ 名前 😀' },
    ])
  })

  it.each([
    { Value: 'ann', Type: 'User', Display: 'Ann' },
    { value: 'ann', TYPE: 'User', DISPLAY: 'Ann' },
    { $REF: 'https://a.example/Users/ann', type: 'User', display: 'Ann' },
  ])('reads %j, for the names of attributes may be in any case', (member) => {
    expect(digest([bob, member])).toBe(digest([bob, ann]))
  })

  it('gives an empty list', () => {
    const { count, read } = memberListSchema.parse([])
    expect([count, read()]).toEqual([0, []])
  })
})

describe('the digest of a list of members', () => {
  it('is the same in any order, and whether or not another member needs mending', () => {
    expect(digest([bob, ann])).toBe(digest([ann, bob]))
    expect(digest([{ value: 'a', display: 'x\ty' }, ann])).toBe(digest([ann, { value: 'a', display: 'x y' }]))
    const members = [{ id: 'ann', type: 'User', displayName: 'Ann' }]
    expect(digest([ann])).toBe(toMemberList(members).digest)
  })

  it.each([
    { members: [] },
    { members: [bob] },
    { members: [ann, bob] },
    { members: [{ ...ann, display: 'Anne' }] },
    { members: [{ ...ann, type: undefined }] },
    { members: [{ value: 'ann', display: 'User', type: 'Ann' }] },
  ])('differs from that of $members', ({ members }) => {
    expect(digest(members)).not.toBe(digest([ann]))
  })
})
