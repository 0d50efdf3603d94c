/**
 * Writes the members of invisible groups (new or restored ones) before the final transaction. There they would take
 * most of its time, and SQLite would block every other writer, such as the rate limiter.
 */
import type { Queries, Store } from '../../store/store.ts'
import { changedRow, deletedRow, type IdentifiedChange } from './apply.ts'
import {
  emptyGroup,
  writeGroups,
  writeMembers,
  type GroupRow,
  type Membership,
} from '../groups/write-groups.ts'

/** Members per transaction, to keep it short; fewer are not staged. */
const MEMBERS_AT_ONCE = 10_000

interface StageOptions {
  readonly accountId: string
  readonly now: Date
  /** Called in each transaction; throws if the sync may not go on. */
  readonly hold: (queries: Queries) => Promise<void>
}

/**
 * Stages members, and resolves to the ids of the staged groups. They stay marked as deleted, without a digest: if the
 * sync ends here, the next one writes them again.
 */
export async function stageMembers(
  store: Store,
  changes: readonly IdentifiedChange[],
  options: StageOptions,
): Promise<ReadonlySet<string>> {
  const hidden = changes.filter(({ local, withMembers }) => withMembers && (local === null || local.deleted))
  const members = hidden.reduce((count, { remote }) => count + (remote.members?.count ?? 0), 0)
  if (members <= MEMBERS_AT_ONCE) return new Set()
  for (const piece of inPieces(hidden)) {
    await store.longTransaction(async (queries) => {
      await options.hold(queries)
      await writePiece(queries, piece, options)
    })
  }
  return new Set(hidden.map(({ id }) => id))
}

/** The groups that begin in a transaction, and its members, of these groups and the previous one. */
interface Piece {
  readonly groups: readonly IdentifiedChange[]
  readonly members: readonly Membership[]
}

function* inPieces(changes: readonly IdentifiedChange[]): Generator<Piece> {
  let groups: IdentifiedChange[] = []
  let members: Membership[] = []
  for (const change of changes) {
    groups.push(change)
    for (const member of change.remote.members?.read() ?? []) {
      members.push({ groupId: change.id, member })
      if (members.length < MEMBERS_AT_ONCE) continue
      yield { groups, members }
      groups = []
      members = []
    }
  }
  yield { groups, members }
}

async function writePiece(
  queries: Queries,
  { groups, members }: Piece,
  { accountId, now }: StageOptions,
): Promise<void> {
  await writeGroups(
    queries,
    groups.map((change) => hiddenRow(change, accountId, now.toISOString())),
  )
  for (const { id, local } of groups) if (local !== null) await emptyGroup(queries, id)
  await writeMembers(queries, members)
}

// Without a digest the members count as unknown, even if this sync ends early.
function hiddenRow(change: IdentifiedChange, accountId: string, time: string): GroupRow {
  const { local } = change
  const row = local === null ? changedRow(change, accountId, time) : deletedRow(local, accountId, time)
  return { ...row, memberDigest: null, memberCount: null, deletedAt: time }
}
