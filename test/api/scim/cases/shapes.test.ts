/** CONTRACT 5: groups and members in any form, mostly known from reports of users of directories. */
import {
  groupsNamed,
  listOf,
  manyGroups,
  ofList,
  startIndexOf,
  status,
  usualReply,
  type Asked,
  type Quirk,
  type Reply,
} from '../../../support/scim/faulty-directory.ts'
import { describeDirectories, list, useAccounts, type DirectoryCase } from '../../../support/scim/sync.ts'

const rowsOf = (...rows: readonly unknown[]): Quirk =>
  ofList((asked) => {
    const first = startIndexOf(asked) - 1
    const Resources = rows.slice(first, first + Number(asked.query.get('count')))
    return { body: { totalResults: rows.length, Resources } }
  })

/** One odd group between two others with members. */
const oddGroup = (group: unknown): Quirk => {
  const [first, last] = groupsNamed('1', '3')
  return rowsOf(first, group, last)
}

/** The group "odd" with these attributes ends with these members. */
const odd = (attributes: object, ids: readonly string[] | null = [], warning?: string): DirectoryCase => ({
  quirk: oddGroup({ id: 'odd', displayName: 'Odd', ...attributes }),
  ends: 3,
  odd: ids,
  warning,
})
const lost = (group: unknown, warning: string) => ({ quirk: oddGroup(group), ends: 2, warning })
const members = (sent: unknown, ids: readonly string[] | null, warning?: string) =>
  odd({ members: sent }, ids, warning)
const EVIL =
  '{"totalResults":1,"Resources":[{"__proto__":{"id":"evil"},"id":"odd","constructor":{"prototype":{}}}]}'
const byAddress = [{ $ref: 'https://a.example/Users/ann%2F1' }, { $ref: 'https://a.example/Users/bob/' }]
const again = [{ value: 'ann' }, { value: 'ann', display: 'Later' }, { value: 'Ann' }]

/** Requests for these of thirty groups by their id are answered by this. */
const byId = (
  ids: RegExp,
  reply: (id: string) => Reply,
  ends: DirectoryCase['ends'] = 30,
  warning?: string,
): DirectoryCase => ({
  groups: manyGroups(30),
  quirk: ({ path }) => {
    const id = path.replace('/Groups/', '')
    return id !== path && ids.test(id) ? reply(id) : undefined
  },
  members: 'per_group',
  ends,
  warning,
})
const withMembers = groupsNamed('1', '3', 'odd')
const bare = withMembers.map(({ members: _members, ...group }) => group)
/** Two groups a page, without members in these replies. */
const withheld = (isWithheld: (asked: Asked) => boolean, warning?: string): DirectoryCase => ({
  quirk: (asked) => {
    const groups = isWithheld(asked) ? bare : withMembers
    return isList(asked) ? { body: listOf(groups, asked.query, 2) } : usualReply(groups, asked)
  },
  ends: 3,
  odd: ['user-of-odd'],
  warning,
})
const isUnnamed = ({ query }: Asked) => query.get('attributes')?.includes('members') !== true
const isList = ({ path }: Asked) => path === '/Groups'
const isExcluded = ({ query }: Asked) => query.get('excludedAttributes') === 'members'
const onlyWithout = withheld(isExcluded, 'per_group')

const both = [{ value: 'ann' }, { value: '2', type: 'Group' }]

describeDirectories(useAccounts(), {
  'a failure at one group': byId(/^3$/, () => status(500), 30, 'could not be read'),
  'one group that is forbidden': byId(/^3$/, () => status(403), 30, 'could not be read'),
  'more than a fifth that are': byId(/^[1-7]$/, () => status(403), 'directory_unauthorized'),
  'one group for which the token has expired': byId(/^3$/, () => status(401), 'directory_unauthorized'),
  'users and groups as members': byId(/./, (id) => ({ body: { id, displayName: 'x', members: both } })),
  'nonsense for one group': byId(/^3$/, () => ({ body: { id: '3', members: 'x' } }), 30, 'could not be read'),
  'a list for each group': byId(/./, () => ({ body: { Resources: both } }), 'directory_invalid_response'),
  // Keycloak.
  'members on request only': withheld(isUnnamed),
  'members on request only, group by group': { ...withheld(isUnnamed), members: 'per_group' },
  'members on request only, after a page of empty groups': {
    quirk: (asked) => {
      const groups = [...bare.slice(0, 2), ...(isUnnamed(asked) ? bare : withMembers).slice(2)]
      return isList(asked) ? { body: listOf(groups, asked.query, 2) } : usualReply(groups, asked)
    },
    ends: 3,
    odd: ['user-of-odd'],
  },
  'members on request only, and another order then': {
    quirk: ofList((asked) => ({
      body: listOf(isUnnamed(asked) ? bare : withMembers.toReversed(), asked.query),
    })),
    ends: 3,
    odd: ['user-of-odd'],
  },
  // GraphQL Hive.
  'members that the list leaves out': withheld(isList, 'per_group'),
  // Oracle refuses pages with a group of more than 10,000 members, unless members are excluded.
  'members that the list must not have': {
    ...onlyWithout,
    quirk: (asked) => (isList(asked) && !isExcluded(asked) ? status(400) : onlyWithout.quirk?.(asked)),
  },
  'members as one object': members({ value: 'ann' }, ['ann']),
  'members as a list of ids': members(['ann', 'bob'], ['ann', 'bob']),
  'members as a word': members('none', null, 'could not be read'),
  'members as null': members(null, []),
  'a null among the members': members([null, { value: 'ann' }], ['ann'], 'no usable id'),
  'an empty member': members([{ value: '' }, { value: 'ann' }], ['ann'], 'no usable id'),
  'an id beyond exact numbers': members([{ value: 2 ** 53 + 2 }, { value: 42 }], ['42'], 'no usable id'),
  'no usable member at all': members([{}, null], null, 'no usable id'),
  'a name of a member that is a number': members([{ value: 'ann', display: 12 }], ['ann']),
  'a name of a member that is an object': members([{ value: 'ann', display: {} }], ['ann']),
  'addresses of members alone': members(byAddress, ['ann/1', 'bob']),
  'nested groups': members([{ value: '1', $ref: '../Groups/1' }], ['1']),
  'the same member again and again': members(again, ['Ann', 'ann']),
  'a removed member': members([{ value: 'ann', operation: 'delete' }, { value: 'bob' }], ['bob']),
  'names of attributes in capitals': {
    quirk: oddGroup({ ID: 'odd', DisplayName: 'Odd', MEMBERS: [{ Value: 'ann' }] }),
    ends: 3,
    odd: ['ann'],
  },
  'a name that is null': odd({ displayName: null }),
  'a name of blanks': odd({ displayName: '  ' }),
  'a name that would hurt a page or a terminal': odd({ displayName: '=cmd|<script>\u0000\u001b[2J\u202e' }),
  'a name that is a number': odd({ displayName: 2024 }),
  'a name that is a list': odd({ displayName: [] }),
  'the name of another group': odd({ displayName: 'Group 1' }),
  'a group that is not active, and listed': odd({ active: false, meta: { deleted: true }, members: [] }),
  'nothing but an id': { quirk: oddGroup({ id: 'odd' }), ends: 3, odd: [] },
  'an id that is a number': { quirk: oddGroup({ id: 2, displayName: 'Odd' }), ends: 3 },
  'an id in braces': { quirk: oddGroup({ id: '{9F-1}', displayName: 'Odd' }), ends: 3 },
  'an id with a percent sign': { quirk: oddGroup({ id: 'a%2Fb', displayName: 'Odd' }), ends: 3 },
  'the id of another group': { quirk: oddGroup({ id: '1', displayName: 'Odd' }), ends: 2 },
  'an id that differs from another in its case': { quirk: rowsOf(...groupsNamed('g', 'G')), ends: 2 },
  'a group without an id': lost({ displayName: 'Odd' }, 'with 404 or 410 (the first: "Odd")'),
  'a group with an id of dots': lost({ id: '..', displayName: 'Odd' }, 'without a usable id'),
  'a null among the groups': lost(null, 'without a usable id'),
  'a list without a single usable group': list(
    { body: { totalResults: 2, Resources: [{}, {}] } },
    'directory_invalid_response',
  ),
  'attributes named like parts of JavaScript': {
    quirk: ofList(() => ({ send: (response) => response.end(EVIL) })),
    ends: 1,
    odd: null,
    warning: 'no members',
  },
})
