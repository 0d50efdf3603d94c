/** CONTRACT 5: groups and members in any form, mostly known from reports of users of directories. */
import { describeDirectories, useAccounts } from '../../../support/scim/directory-case.ts'
import { groupsNamed, type Quirk, ofList } from '../../../support/scim/faulty-directory.ts'

const rowsOf = (...rows: readonly unknown[]): Quirk =>
  ofList(({ query }) => ({
    body: { totalResults: rows.length, Resources: rows.slice(0, Number(query.get('count'))) },
  }))

/** One odd group between two others with members. */
const oddGroup = (group: unknown): Quirk => {
  const [first, last] = groupsNamed('1', '3')
  return rowsOf(first, group, last)
}

const oddMembers = (members: unknown) => oddGroup({ id: 'odd', displayName: 'Odd', members })

const byCase = rowsOf(...groupsNamed('g', 'G'))

describeDirectories(useAccounts(), {
  'members as one object': { quirk: oddMembers({ value: 'ann' }), ends: 3, odd: ['ann'] },
  'members as a list of ids': { quirk: oddMembers(['ann', 'bob']), ends: 3, odd: ['ann', 'bob'] },
  'members as a word': { quirk: oddMembers('none'), ends: 3, odd: null, warning: 'could not be read' },
  'members as null': { quirk: oddMembers(null), ends: 3, odd: [] },
  'a null among the members': {
    quirk: oddMembers([null, { value: 'ann' }]),
    ends: 3,
    odd: ['ann'],
    warning: 'no usable id',
  },
  'an empty member': {
    quirk: oddMembers([{ value: '' }, { value: 'ann' }]),
    ends: 3,
    odd: ['ann'],
    warning: 'no usable id',
  },
  'a number too large to be exact for an id': {
    quirk: oddMembers([{ value: Number.MAX_SAFE_INTEGER + 2 }, { value: 42 }]),
    ends: 3,
    odd: ['42'],
    warning: 'no usable id',
  },
  'no usable member at all': { quirk: oddMembers([{}, null]), ends: 3, odd: null, warning: 'no usable id' },
  'a name of a member that is a number': {
    quirk: oddMembers([{ value: 'ann', display: 12 }]),
    ends: 3,
    odd: ['ann'],
  },
  'a name of a member that is an object': {
    quirk: oddMembers([{ value: 'ann', display: {} }]),
    ends: 3,
    odd: ['ann'],
  },
  'addresses of members alone': {
    quirk: oddMembers([
      { $ref: 'https://a.example/Users/ann%2F1' },
      { $ref: 'https://a.example/Users/bob/' },
    ]),
    ends: 3,
    odd: ['ann/1', 'bob'],
  },
  'nested groups': {
    quirk: oddMembers([{ value: '1', type: 'Group', $ref: '../Groups/1' }]),
    ends: 3,
    odd: ['1'],
  },
  'the same member again and again': {
    quirk: oddMembers([{ value: 'ann' }, { value: 'ann', display: 'Later' }, { value: 'Ann' }]),
    ends: 3,
    odd: ['Ann', 'ann'],
  },
  'a member that was taken out': {
    quirk: oddMembers([{ value: 'ann', operation: 'delete' }, { value: 'bob' }]),
    ends: 3,
    odd: ['bob'],
  },
  'names of attributes in capitals': {
    quirk: oddGroup({ ID: 'odd', DisplayName: 'Odd', MEMBERS: [{ Value: 'ann' }] }),
    ends: 3,
    odd: ['ann'],
  },
  'a name that is null': { quirk: oddGroup({ id: 'odd', displayName: null }), ends: 3, odd: [] },
  'a name of blanks': { quirk: oddGroup({ id: 'odd', displayName: '  ' }), ends: 3, odd: [] },
  'a name that would hurt a page or a terminal': {
    quirk: oddGroup({ id: 'odd', displayName: '=cmd|<script>\u0000\u001b[2J\u202e' }),
    ends: 3,
    odd: [],
  },
  'an id that is a number': { quirk: oddGroup({ id: 2, displayName: 'Odd' }), ends: 3 },
  'an id in braces': { quirk: oddGroup({ id: '{9F-1}', displayName: 'Odd' }), ends: 3 },
  'an id with a percent sign': { quirk: oddGroup({ id: 'a%2Fb', displayName: 'Odd' }), ends: 3 },
  'the id of another group': { quirk: oddGroup({ id: '1', displayName: 'Odd' }), ends: 2 },
  'an id that differs from another in its case': { quirk: byCase, ends: 2 },
  'the name of another group': { quirk: oddGroup({ id: 'odd', displayName: 'Group 1' }), ends: 3, odd: [] },
  'a group that is not active, and listed': {
    quirk: oddGroup({ id: 'odd', displayName: 'Odd', active: false, meta: { deleted: true }, members: [] }),
    ends: 3,
    odd: [],
  },
  'nothing but an id': { quirk: oddGroup({ id: 'odd' }), ends: 3, odd: [] },
  'a name that is a number': { quirk: oddGroup({ id: 'odd', displayName: 2024 }), ends: 3, odd: [] },
  'a name that is a list': {
    quirk: oddGroup({ id: 'odd', displayName: [] }),
    ends: 3,
    odd: [],
  },
  'a group without an id': {
    quirk: oddGroup({ displayName: 'Odd' }),
    ends: 2,
    warning: 'the first: "Odd"',
  },
  'a group with an id of dots': {
    quirk: oddGroup({ id: '..', displayName: 'Odd' }),
    ends: 2,
    warning: 'without a usable id',
  },
  'a null among the groups': { quirk: oddGroup(null), ends: 2, warning: 'without a usable id' },
  'a list without a single usable group': {
    quirk: ofList(() => ({ body: { totalResults: 2, Resources: [{}, {}] } })),
    ends: 'directory_invalid_response',
  },
  'attributes named like parts of JavaScript': {
    quirk: ofList(() => ({
      send: (response) =>
        response.end(
          '{"totalResults":1,"Resources":[{"__proto__":{"id":"evil"},"id":"odd","constructor":{"prototype":{}}}]}',
        ),
    })),
    ends: 1,
    odd: null,
    warning: 'no members',
  },
})
