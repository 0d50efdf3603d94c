import { SyncFailure } from '../failures.ts'
import type { SyncLimits } from './limits.ts'
import { groupCalled, type RemoteGroup } from './messages.ts'

/** The groups of a directory in memory, each once, within the limits. */
export class RemoteGroups {
  readonly #limits: SyncLimits
  readonly #groups = new Map<string, RemoteGroup>()
  #members = 0
  #bytes = 0

  constructor(limits: SyncLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#groups.size
  }

  ids(): string[] {
    return [...this.#groups.keys()]
  }

  values(): RemoteGroup[] {
    return [...this.#groups.values()]
  }

  has(scimId: string): boolean {
    return this.#groups.has(scimId)
  }

  get(scimId: string): RemoteGroup | undefined {
    return this.#groups.get(scimId)
  }

  /**
   * Adds a group, or replaces the one with its id.
   * @throws {SyncFailure} above a limit of a sync.
   */
  add(group: RemoteGroup): void {
    const former = this.#groups.get(group.scimId)
    if (former !== undefined) this.#count(former, -1)
    this.#groups.set(group.scimId, group)
    this.#count(group, 1)
    const { groups, members, memoryBytes, membersPerGroup } = this.#limits
    if (this.size > groups) throw tooLarge(`more than ${groups} groups`)
    if (this.#members > members) throw tooLarge(`more than ${members} memberships`)
    if (this.#bytes > memoryBytes) throw tooLarge(`more than ${memoryBytes} bytes of groups and members`)
    if ((group.members?.count ?? 0) > membersPerGroup) {
      throw tooLarge(`${groupCalled(group.scimId)} has more than ${membersPerGroup} members`)
    }
  }

  delete(scimId: string): void {
    const group = this.#groups.get(scimId)
    if (group === undefined) return
    this.#groups.delete(scimId)
    this.#count(group, -1)
  }

  #count({ scimId, externalId, displayName, members }: RemoteGroup, sign: 1 | -1): void {
    this.#members += sign * (members?.count ?? 0)
    this.#bytes +=
      sign * (scimId.length + (externalId?.length ?? 0) + displayName.length + (members?.bytes ?? 0))
  }
}

function tooLarge(detail: string): SyncFailure {
  return new SyncFailure('directory_too_large', detail)
}
