import type { Plan } from './plan.ts'

/** What a plan would change, one tab-separated line per group: what happens, the directory's id, the name. */
export function describePlan({ changes, deletions }: Plan): string[] {
  return [
    'change\tscim_id\tdisplay_name\tmembers',
    ...changes.map(({ ours, theirs, withMembers }) => {
      const members = withMembers ? `${ours?.memberCount ?? 0} -> ${theirs.members?.count ?? 0}` : ''
      return [kindOf(ours), theirs.scimId, theirs.displayName, members].join('\t')
    }),
    ...deletions.map((group) => ['delete', group.scimId, group.displayName, ''].join('\t')),
  ]
}

function kindOf(ours: { readonly deleted: boolean } | null): 'create' | 'restore' | 'update' {
  if (ours === null) return 'create'
  return ours.deleted ? 'restore' : 'update'
}
