import { shorten } from '../../untrusted/shorten.ts'

/** What a sync interprets or leaves out. */
const SENTENCES = {
  group_without_id: 'without a usable id: left out, so nothing counts as deleted',
  member_without_id: 'with members that have no usable id: these are left out',
  odd_attribute: 'with attributes of a wrong type: these are left out',
  members_unreadable: 'with members that could not be read: these stay as they are stored',
  not_listed: 'readable by id, but in no list of groups: deleted here',
} as const

export type Warning = keyof typeof SENTENCES

/** The warnings of one sync, counted by group, for its log and its dry run. */
export class Warnings {
  readonly #groups = new Map<Warning, Set<string>>()

  /** Adds a warning about the group with this id or name; a group counts once. */
  add(warning: Warning, group: string): void {
    const groups = this.#groups.get(warning) ?? new Set()
    this.#groups.set(warning, groups.add(group))
  }

  /** One sentence per kind, with the number of groups and the first of them. */
  lines(): string[] {
    return [...this.#groups].map(([warning, groups]) => {
      const [first = ''] = groups
      return `${groups.size} group${groups.size === 1 ? '' : 's'} ${SENTENCES[warning]} (the first: "${shorten(first)}")`
    })
  }
}
