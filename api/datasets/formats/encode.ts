import { jsonText } from '../../http/respond.ts'
import { encodeArrow } from './encode-arrow.ts'
import { encodeCsv } from './encode-csv.ts'
import { encodeParquet } from './encode-parquet.ts'
import type { Format } from './formats.ts'
import type { FileMetadata, Table } from './table.ts'

/** A table and its metadata: `meta` for JSON, `metadata` for files. */
export interface Document extends Table {
  readonly meta: object
  readonly metadata: FileMetadata
}

const ENCODERS: Readonly<Record<Format, (document: Document) => Buffer>> = {
  json: ({ rows, meta }) => Buffer.from(jsonText({ data: rows, meta })),
  csv: encodeCsv,
  parquet: (document) => encodeParquet(document, document.metadata),
  arrow: (document) => encodeArrow(document, document.metadata),
}

/** The body of a reply: the same rows in the same order in every format (CONTRACT 4.6). */
export function encodeDocument(format: Format, document: Document): Buffer {
  return ENCODERS[format](document)
}
