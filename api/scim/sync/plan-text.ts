import type { Change, Plan } from './plan.ts'
import type { Removals } from './removals.ts'

/**
 * A plan as one tab-separated line per group: action, the directory's id, name, number of members and removed members,
 * the local id. Changed values show both states.
 */
export function describePlan({ changes, deletions }: Plan, removals: Removals): string[] {
  return [
    'change\tscim_id\tdisplay_name\tmembers\tid',
    ...changes.map((change) => describeChange(change, removals)),
    ...deletions.map(({ scimId, displayName, id }) => ['delete', scimId, displayName, '', id].join('\t')),
  ]
}

function describeChange({ local, remote, withMembers }: Change, removals: Removals): string {
  const count = withMembers ? String(remote.members?.count) : ''
  if (local === null) {
    const members = withMembers ? `0 -> ${count}` : ''
    return ['create', remote.scimId, remote.displayName, members, ''].join('\t')
  }
  const members = withMembers ? `${local.memberCount ?? 0} -> ${count}` : ''
  return [
    local.deleted ? 'restore' : 'update',
    fromTo(local.scimId, remote.scimId),
    fromTo(local.displayName, remote.displayName),
    `${members}${describeRemovals(local.id, removals)}`,
    local.id,
  ].join('\t')
}

function fromTo(former: string, present: string): string {
  return former === present ? present : `${former} -> ${present}`
}

function describeRemovals(id: string, { byGroup }: Removals): string {
  const removed = byGroup.get(id)
  if (removed === undefined) return ''
  const more = removed.count > removed.first.length ? ', …' : ''
  return ` (${removed.count} leave: ${removed.first.join(', ')}${more})`
}
