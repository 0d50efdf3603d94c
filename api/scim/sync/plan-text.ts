import type { Plan } from './plan.ts'

/** What a plan would change, one tab-separated line per group: what happens, the directory's id, the name. */
export function describePlan({ changes, deletions }: Plan): string[] {
  return [
    'change\tscim_id\tdisplay_name\tmembers',
    ...changes.map(({ local, remote, withMembers }) => {
      const members = withMembers ? `${local?.memberCount ?? 0} -> ${remote.members?.count ?? 0}` : ''
      return [kindOf(local), remote.scimId, remote.displayName, members].join('\t')
    }),
    ...deletions.map((group) => ['delete', group.scimId, group.displayName, ''].join('\t')),
  ]
}

function kindOf(local: { readonly deleted: boolean } | null): 'create' | 'restore' | 'update' {
  if (local === null) return 'create'
  return local.deleted ? 'restore' : 'update'
}
