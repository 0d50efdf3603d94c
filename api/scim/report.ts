/** What a sync did, for the account (CONTRACT 5), and what it would do, for the operator. */
import { z } from 'zod'
import { NAMED } from './members.ts'
import type { Change, Plan } from './plan.ts'

const partSchema = z.strictObject({
  count: z.int().nonnegative(),
  names: z.array(z.string()).describe(`The first ${NAMED} of them.`),
})

/** The changes of a job. Members are named as `group: member`. */
export const reportSchema = z.strictObject({
  groups_added: partSchema,
  groups_renamed: partSchema.describe('Names as `former -> present`.'),
  groups_deleted: partSchema,
  members_joined: partSchema.describe('Names as `group: member`.'),
  members_left: partSchema.describe('Of groups that stay. Names as `group: member`.'),
  warnings: z.array(z.string()).describe('What the sync interpreted, left out or kept.'),
})

export type Report = z.infer<typeof reportSchema>

const NOTHING = { count: 0, names: [] }

/** The report of a job that changed nothing. */
export const NO_CHANGES: Report = {
  groups_added: NOTHING,
  groups_renamed: NOTHING,
  groups_deleted: NOTHING,
  members_joined: NOTHING,
  members_left: NOTHING,
  warnings: [],
}

/** The changes of a plan. */
export function reportOf({ changes, deletions }: Plan, warnings: readonly string[]): Report {
  const added = changes.filter(({ local }) => local === null || local.deleted)
  const renamed = changes.filter(
    ({ local, remote }) => local?.deleted === false && local.displayName !== remote.displayName,
  )
  return {
    groups_added: partOf(added.map(({ remote }) => remote.displayName)),
    groups_renamed: partOf(
      renamed.map(({ local, remote }) => `${local?.displayName} -> ${remote.displayName}`),
    ),
    groups_deleted: partOf(deletions.map(({ displayName }) => displayName)),
    members_joined: membersOf(changes, 'joined'),
    members_left: membersOf(changes, 'left'),
    warnings: [...warnings],
  }
}

function partOf(names: readonly string[], count = names.length) {
  return { count, names: names.slice(0, NAMED) }
}

function membersOf(changes: readonly Change[], which: 'joined' | 'left') {
  const names: string[] = []
  let count = 0
  for (const { members, remote } of changes) {
    if (members === null) continue
    count += members[which]
    if (names.length < NAMED)
      names.push(...members[`${which}Names`].map((name) => `${remote.displayName}: ${name}`))
  }
  return partOf(names, count)
}

/** Removed members that a plan names per group. */
const NAMED_IN_PLAN = 10

/**
 * A plan as one tab-separated line per group: action, the directory's id, name, number of members and removed members,
 * the local id. Changed values show both states.
 */
export function describePlan({ changes, deletions }: Plan): string[] {
  return [
    'change\tscim_id\tdisplay_name\tmembers\tid',
    ...changes.map(describeChange),
    ...deletions.map(({ scimId, displayName, id }) => ['delete', scimId, displayName, '', id].join('\t')),
  ]
}

function describeChange({ local, remote, members }: Change): string {
  const counts = members === null ? '' : `${local?.memberCount ?? 0} -> ${members.count}`
  if (local === null) return ['create', remote.scimId, remote.displayName, counts, ''].join('\t')
  return [
    local.deleted ? 'restore' : 'update',
    fromTo(local.scimId, remote.scimId),
    fromTo(local.displayName, remote.displayName),
    `${counts}${describeRemovals(members)}`,
    local.id,
  ].join('\t')
}

function fromTo(former: string, present: string): string {
  return former === present ? present : `${former} -> ${present}`
}

function describeRemovals(members: Change['members']): string {
  if (members === null || members.left === 0) return ''
  const names = members.leftNames.slice(0, NAMED_IN_PLAN)
  const more = members.left > names.length ? ['…'] : []
  return ` (${members.left} leave: ${[...names, ...more].join(', ')})`
}
