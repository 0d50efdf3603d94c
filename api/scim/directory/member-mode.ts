/** Where members come from: the list of groups, one request per group, or nowhere. */
export const MEMBER_MODES = ['inline', 'per_group', 'off'] as const
export type MemberMode = (typeof MEMBER_MODES)[number]
