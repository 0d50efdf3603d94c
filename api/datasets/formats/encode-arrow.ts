import {
  Decimal,
  Int64,
  Table as ArrowTable,
  Utf8,
  tableToIPC,
  vectorFromArray,
  type Vector,
} from 'apache-arrow'
import type { ColumnType } from '../../../pipeline/contract/dataset.ts'
import { integers, texts, type FileMetadata, type Table } from './table.ts'

const WORDS = 4
const WORD_BITS = 32n

const VECTORS: Readonly<Record<ColumnType, (table: Table, name: string) => Vector>> = {
  text: (table, name) => vectorFromArray(texts(table, name), new Utf8()),
  integer: (table, name) => vectorFromArray(integers(table, name), new Int64()),
  decimal: (table, name) => vectorFromArray(integers(table, name).map(decimalWords), new Decimal(0, 38, 128)),
}

/** An Arrow IPC stream with one batch; decimals are decimal128(38, 0), the schema holds the metadata. */
export function encodeArrow(table: Table, metadata: FileMetadata): Buffer {
  const columns = Object.entries(table.columns).map(([name, type]) => [name, VECTORS[type](table, name)])
  const made = new ArrowTable(Object.fromEntries(columns))
  for (const [key, value] of Object.entries(metadata)) made.schema.metadata.set(key, value)
  return Buffer.from(tableToIPC(made, 'stream'))
}

/** A non-negative whole number as 128 bits, the least significant word first. */
function decimalWords(value: bigint): Uint32Array {
  return Uint32Array.from({ length: WORDS }, (_, word) =>
    Number(BigInt.asUintN(32, value >> (BigInt(word) * WORD_BITS))),
  )
}
