import { shorten } from '../untrusted/shorten.ts'

/** What a sync interprets, leaves out or keeps, by group. */
const OF_GROUPS = {
  group_without_id: 'without a usable id: left out, so nothing counts as deleted',
  member_without_id: 'with members that have no usable id: these are left out',
  odd_attribute: 'with attributes of a wrong type: these are left out',
  members_unreadable: 'with members that could not be read: these stay as they are stored',
  not_listed: 'readable by id, but in no list of groups: deleted here',
  kept: 'not in the list, but not provably deleted: these stay',
} as const

/** What holds for the whole directory. */
const OF_DIRECTORY = {
  capped:
    'The directory ignores count, so its list may be capped: a group that is not listed is only deleted if a ' +
    'request for it is answered with 404 or 410',
  no_members:
    'The directory returned no members for any group: a group that had members counts as empty, for the others they ' +
    'stay unknown',
} as const

type GroupWarning = keyof typeof OF_GROUPS

/** The warnings of one sync, for its job, its log and its dry run. */
export class Warnings {
  readonly #groups = new Map<GroupWarning, Set<string>>()
  readonly #directory = new Set<keyof typeof OF_DIRECTORY>()

  /** Adds a warning about the group with this id or name; a group counts once. */
  add(warning: GroupWarning, group: string): void {
    const groups = this.#groups.get(warning) ?? new Set()
    this.#groups.set(warning, groups.add(group))
  }

  addOfDirectory(warning: keyof typeof OF_DIRECTORY): void {
    this.#directory.add(warning)
  }

  /** One sentence per kind; those about groups have their number and the first of them. */
  lines(): string[] {
    const ofGroups = [...this.#groups].map(([warning, groups]) => {
      const [first = ''] = groups
      return `${groups.size} group${groups.size === 1 ? '' : 's'} ${OF_GROUPS[warning]} (the first: "${shorten(first)}")`
    })
    return [...[...this.#directory].map((warning) => OF_DIRECTORY[warning]), ...ofGroups]
  }
}
