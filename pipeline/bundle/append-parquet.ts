/**
 * Joins Parquet files without reading their rows: the row groups are copied as they are, and the footer, which says
 * where each of them lies, is written anew.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { DataError, messageOf } from '../errors.ts'
import { decodeStruct, encodeStruct } from './thrift.ts'
import type { Field, List, Struct, Value } from './thrift.ts'

const MAGIC = Buffer.from('PAR1')

/** After the footer: its length in four bytes, and the magic. */
const TAIL_BYTES = 8

const COPIED_AT_ONCE = 1 << 20

/** Numbers of the fields that matter here, from Parquet's own definition (parquet.thrift). */
const FILE = { schema: 2, rows: 3, rowGroups: 4, keyValues: 5 } as const
const ROW_GROUP = { columns: 1, fileOffset: 5, ordinal: 7 } as const
const COLUMN = { fileOffset: 2, metadata: 3, offsetIndex: 4, columnIndex: 6 } as const
const COLUMN_METADATA = { dataPages: 9, indexPages: 10, dictionaryPage: 11, bloomFilter: 14 } as const

/** A file with its decoded footer; what lies before `dataEnd` is data. */
type Opened = { readonly descriptor: number; readonly footer: Struct; readonly dataEnd: number }

/**
 * Appends the rows of the file `added` to the file `target`, which takes over its key-value metadata too.
 * @throws DataError when one of them is no whole Parquet file, or their columns differ; `target` is as it was then.
 */
export function appendParquet(target: string, added: string): void {
  using files = new DisposableStack()
  const open = (path: string, flags: string) => files.adopt(openSync(path, flags), closeSync)
  const before = readFooter(target, open(target, 'r+'))
  const more = readFooter(added, open(added, 'r'))
  if (!isDeepStrictEqual(fieldOf(before.footer, FILE.schema), fieldOf(more.footer, FILE.schema))) {
    throw new DataError(`${added} has other columns than ${target}, so its rows cannot be appended`)
  }
  const footer = encodeStruct(joinFooters(before, more))
  const end = copyData(more, before)
  const tail = Buffer.alloc(TAIL_BYTES)
  tail.writeUInt32LE(footer.length)
  MAGIC.copy(tail, 4)
  writeWhole(before.descriptor, Buffer.concat([footer, tail]), end)
  ftruncateSync(before.descriptor, end + footer.length + TAIL_BYTES)
}

function readFooter(path: string, descriptor: number): Opened {
  try {
    const { size } = fstatSync(descriptor)
    const tail = readAt(descriptor, size - TAIL_BYTES, TAIL_BYTES)
    if (!tail.subarray(4).equals(MAGIC)) throw new RangeError('it does not end as one')
    const length = tail.readUInt32LE()
    const dataEnd = size - TAIL_BYTES - length
    return { descriptor, footer: decodeStruct(readAt(descriptor, dataEnd, length)), dataEnd }
  } catch (error) {
    throw new DataError(`${path} is no whole Parquet file: ${messageOf(error)}`, { cause: error })
  }
}

function readAt(descriptor: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  if (position < MAGIC.length || readSync(descriptor, bytes, 0, length, position) < length) {
    throw new RangeError('it is too short')
  }
  return bytes
}

/** Copies all data behind that of `to`; gives where it ends. */
function copyData(from: Opened, to: Opened): number {
  const piece = Buffer.alloc(COPIED_AT_ONCE)
  let end = to.dataEnd
  for (let at = MAGIC.length; at < from.dataEnd;) {
    const length = readSync(from.descriptor, piece, 0, Math.min(piece.length, from.dataEnd - at), at)
    if (length === 0) throw new RangeError('A Parquet file was cut while it was copied; run again')
    writeWhole(to.descriptor, piece.subarray(0, length), end)
    end += length
    at += length
  }
  return end
}

/** The system may take fewer bytes at a time than it is given; a disk is full only when it takes none. */
function writeWhole(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let written = 0; written < bytes.length;) {
    written += writeSync(descriptor, bytes, written, bytes.length - written, position + written)
  }
}

function joinFooters(before: Opened, more: Opened): Struct {
  const groups = listOf(before.footer, FILE.rowGroups)
  const shift = BigInt(before.dataEnd - MAGIC.length)
  const moved = listOf(more.footer, FILE.rowGroups).items.map((group, index) =>
    moveRowGroup(asStruct(group), shift, groups.items.length + index),
  )
  const keyValues = more.footer.fields.filter(({ id }) => id === FILE.keyValues)
  return {
    fields: [
      ...changeFields(before.footer, {
        [FILE.rows]: (rows) => asInteger(rows) + asInteger(fieldOf(more.footer, FILE.rows)),
        [FILE.rowGroups]: () => ({ ...groups, items: [...groups.items, ...moved] }),
      }).fields.filter(({ id }) => id !== FILE.keyValues),
      ...keyValues,
    ].toSorted((a, b) => a.id - b.id),
  }
}

function moveRowGroup(group: Struct, shift: bigint, ordinal: number): Struct {
  const move = (offset: Value) => shifted(asInteger(offset), shift)
  const moveMetadata = (metadata: Value) =>
    changeFields(asStruct(metadata), {
      [COLUMN_METADATA.dataPages]: move,
      [COLUMN_METADATA.indexPages]: move,
      [COLUMN_METADATA.dictionaryPage]: move,
      [COLUMN_METADATA.bloomFilter]: move,
    })
  const moveColumn = (column: Value) =>
    changeFields(asStruct(column), {
      [COLUMN.fileOffset]: move,
      [COLUMN.metadata]: moveMetadata,
      [COLUMN.offsetIndex]: move,
      [COLUMN.columnIndex]: move,
    })
  return changeFields(group, {
    [ROW_GROUP.columns]: (columns) => ({ ...asList(columns), items: asList(columns).items.map(moveColumn) }),
    [ROW_GROUP.fileOffset]: move,
    [ROW_GROUP.ordinal]: () => BigInt(ordinal),
  })
}

/** An offset of 0 says that there is nothing: no data lies before the magic. */
function shifted(offset: bigint, shift: bigint): bigint {
  return offset === 0n ? 0n : offset + shift
}

/** The struct with other values in some of the fields that it has. */
function changeFields(struct: Struct, changes: Readonly<Record<number, (value: Value) => Value>>): Struct {
  const change = (field: Field) => ({ ...field, value: changes[field.id]?.(field.value) ?? field.value })
  return { fields: struct.fields.map(change) }
}

function fieldOf(struct: Struct, id: number): Value {
  return struct.fields.find((field) => field.id === id)?.value
}

function listOf(struct: Struct, id: number): List {
  return asList(fieldOf(struct, id))
}

function asInteger(value: Value): bigint {
  if (typeof value !== 'bigint') throw new RangeError('the footer has no number where one belongs')
  return value
}

function asList(value: Value): List {
  if (typeof value !== 'object' || !('items' in value)) throw new RangeError('the footer lacks a list')
  return value
}

function asStruct(value: Value): Struct {
  if (typeof value !== 'object' || !('fields' in value)) throw new RangeError('the footer lacks a struct')
  return value
}
