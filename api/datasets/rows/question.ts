/** A request for rows of the dataset, in a common form. */
import type { Columns } from '../../../pipeline/contract/dataset.ts'
import type { Format } from '../formats/formats.ts'
import type { FileMetadata, Table } from '../formats/table.ts'
import type { DateWindow } from '../rankings/window.ts'
import type { Snapshot, SnapshotFacts } from '../snapshots/facts.ts'

/** A question with defaults and clamps applied: equal requests give equal questions. */
export interface Question {
  /** The path of the operation. */
  readonly path: string
  /** Unique per question, in characters that an entity tag allows. */
  readonly key: string
  /** Every parameter written out, except snapshot and format. */
  readonly parameters: readonly (readonly [name: string, value: string])[]
  readonly window: DateWindow
  readonly page?: Page
  readonly columns: Columns
  /** Additional metadata of a file. */
  readonly metadata: FileMetadata
  /** @throws {ApiError} 400 if the snapshot lacks the requested data. */
  readonly read: (snapshot: Snapshot) => Promise<Rows>
}

/** A part of a list. */
export interface Page {
  readonly limit: number
  readonly offset: number
  /** The largest allowed offset. */
  readonly maxOffset: number
}

interface Rows {
  readonly rows: Table['rows']
  /** The total over all pages, in the unit of limit and offset; undefined without pages. */
  readonly total?: number
}

/** A question to a snapshot, and the format of the answer. */
export interface Place {
  readonly snapshot: SnapshotFacts
  readonly question: Question
  readonly format: Format
  /** Whether it begins with a byte order mark; only for CSV. */
  readonly hasMark?: boolean
}

/** A request before a snapshot is chosen. */
export interface RowsRequest {
  readonly asOf: string | undefined
  readonly format: Format | undefined
  /** Whether CSV begins with a byte order mark. */
  readonly hasMark: boolean
  /** @throws {ApiError} 400 if the window would start after its end. */
  readonly resolve: (snapshot: SnapshotFacts) => Question
}
