/** Lists of members from the directory: compared with the stored ones, and staged in the store page by page. */
import { randomUUID } from 'node:crypto'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { Queries, Store } from '../store/store.ts'
import { digestOf, sortUnique, type LocalGroup, type MemberList } from './group.ts'
import { addMemberLists, readMemberNames, type Membership } from './groups.ts'
import type { Member } from './messages.ts'

/** Names of members that a report lists. */
export const NAMED = 100

/** Memberships per transaction, to keep it short. */
const STAGED_AT_ONCE = 2000

/** Members between two turns of the event loop. */
const PER_TURN = 5000

/** Where the members of a sync are staged; without it (a dry run) they are only compared. */
export class MemberStage {
  readonly #store: Store
  readonly #job: { readonly id: string; readonly accountId: string }
  readonly #hold: (queries: Queries) => Promise<void>
  #lists: string[] = []
  #rows: Membership[] = []
  #writing: Promise<void> = Promise.resolve()

  /** `hold` is called in each transaction; it throws if the sync may not go on. */
  constructor(
    store: Store,
    job: { readonly id: string; readonly accountId: string },
    hold: (queries: Queries) => Promise<void>,
  ) {
    this.#store = store
    this.#job = job
    this.#hold = hold
  }

  /** Stages a list of members; resolves to its id. It counts as written after `flush`. */
  async add(members: readonly Member[]): Promise<string> {
    const listId = randomUUID()
    this.#lists.push(listId)
    for (const member of members) {
      this.#rows.push({ listId, member })
      if (this.#rows.length >= STAGED_AT_ONCE) await this.flush()
    }
    return listId
  }

  /** Writes what has been added, in one short transaction. */
  async flush(): Promise<void> {
    const [lists, rows] = [this.#lists, this.#rows]
    this.#lists = []
    this.#rows = []
    const write = async () => {
      if (lists.length === 0 && rows.length === 0) return
      await this.#store.transaction(async (queries) => {
        await this.#hold(queries)
        await addMemberLists(queries, this.#job, lists, rows)
      })
    }
    // One after the other: rows of a list follow the row of the list itself.
    this.#writing = this.#writing.then(write)
    await this.#writing
  }
}

/** Compares the members of a group with the stored ones, and stages them if they differ. */
export async function takeMembers(
  received: readonly Member[],
  local: LocalGroup | undefined,
  { queries, stage }: { readonly queries: Queries; readonly stage: MemberStage | undefined },
): Promise<MemberList> {
  const members = sortUnique(received)
  const known = { count: members.length, digest: digestOf(members) }
  if (known.digest === local?.memberDigest) {
    return { ...known, listId: local.memberList, joined: 0, left: 0, joinedNames: [], leftNames: [] }
  }
  await endOfTurn()
  const { joined, left } = await compare(members, local?.memberList ?? null, queries)
  return {
    ...known,
    listId: (await stage?.add(members)) ?? null,
    joined: joined.length,
    left: left.length,
    joinedNames: joined.slice(0, NAMED),
    leftNames: left.slice(0, NAMED),
  }
}

async function compare(members: readonly Member[], listId: string | null, queries: Queries) {
  const former = listId === null ? new Map<string, string>() : await readMemberNames(queries, listId)
  const joined: string[] = []
  for (const [index, { id, displayName }] of members.entries()) {
    if (!former.delete(id)) joined.push(displayName ?? id)
    if (index % PER_TURN === PER_TURN - 1) await endOfTurn()
  }
  return { joined, left: [...former.values()] }
}
