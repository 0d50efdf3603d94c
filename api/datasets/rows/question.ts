/** What a request for rows of the dataset asks, whichever rows they are. */
import type { Columns } from '../../../pipeline/contract/dataset.ts'
import type { Format } from '../formats/formats.ts'
import type { FileMetadata, Table } from '../formats/table.ts'
import type { DateWindow } from '../rankings/window.ts'
import type { ReadableSnapshot, SnapshotFacts } from '../snapshots/open-snapshot.ts'

/** A question once defaults and clamps are applied: requests that mean the same resolve to the same. */
export interface Question {
  /** Where it is asked. */
  readonly path: string
  /** What tells the question from all others, in letters that an entity tag may have. */
  readonly key: string
  /** Every parameter written out, but for the snapshot and the format. */
  readonly parameters: readonly (readonly [name: string, value: string])[]
  readonly window: DateWindow
  readonly page?: Page
  readonly columns: Columns
  /** What a file says of itself beside the usual. */
  readonly metadata: FileMetadata
  /** @throws {ApiError} 400 when the snapshot lacks what is asked for. */
  readonly read: (snapshot: ReadableSnapshot) => Promise<Rows>
}

/** Which part of a list is asked for. */
export interface Page {
  readonly limit: number
  readonly offset: number
  /** The largest offset that may be asked for. */
  readonly maxOffset: number
}

/** The rows of an answer. */
interface Rows {
  readonly rows: Table['rows']
  /** How much the pages of the list have together, counted as limit and offset are; undefined where there are no pages. */
  readonly total?: number
}

/** A question to a snapshot, and the form of its answer. */
export interface Place {
  readonly snapshot: SnapshotFacts
  readonly question: Question
  readonly format: Format
  /** Whether it begins with a byte order mark; CSV alone may. */
  readonly hasMark?: boolean
}

/** What a request says, before a snapshot is chosen. */
export interface RowsRequest {
  readonly asOf: string | undefined
  readonly format: Format | undefined
  /** Whether CSV is to begin with a byte order mark. */
  readonly hasMark: boolean
  /** @throws {ApiError} 400 when the window would start after it ends. */
  readonly resolve: (snapshot: SnapshotFacts) => Question
}
