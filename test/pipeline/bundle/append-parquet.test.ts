/** Parquet files are joined without a look at their rows: a reader finds all of them, in their order. */
import fs, { copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { appendParquet } from '../../../pipeline/bundle/append-parquet.ts'
import { decodeStruct, encodeStruct } from '../../../pipeline/bundle/thrift.ts'
import type { Value } from '../../../pipeline/bundle/thrift.ts'
import { TemporaryFolders } from '../../support/nightly.ts'

/** Every kind of column: dictionaries with bloom filters, plain numbers, lists, structs, nulls, decimals. */
const COLUMNS = `
  i AS number,
  'name ' || (i % 7) AS repeated,
  uuid() AS distinct_text,
  CASE WHEN i % 3 = 0 THEN i END AS sometimes,
  [i, NULL, i + 1] AS list,
  {'a': i, 'b': [to_days(CAST(i AS INTEGER))::VARCHAR]} AS struct,
  (i * 1e20)::DECIMAL(38, 0) AS wide,
  i % 2 = 0 AS flag,
  i / 3 AS fraction,
  TIMESTAMPTZ '2026-01-01' + to_minutes(CAST(i AS BIGINT)) AS time`

const folders = new TemporaryFolders()
const folder = folders.make()
let instance: DuckDBInstance
let connection: DuckDBConnection

beforeAll(async () => {
  instance = await DuckDBInstance.create(':memory:')
  connection = await instance.connect()
})

afterAll(() => {
  connection.closeSync()
  instance.closeSync()
  folders.removeAll()
})

/** A Parquet file with the numbers from `first` on, in row groups of 2048. */
async function write(
  name: string,
  first: number,
  rows: number,
  { columns = COLUMNS, notes = name } = {},
): Promise<string> {
  const path = join(folder, name)
  await connection.run(`COPY (SELECT ${columns} FROM range(${first}, ${first + rows}) AS t (i)) TO '${path}'
    (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048, KV_METADATA {written_for: '${notes}'})`)
  return path
}

async function read(sql: string) {
  return (await connection.runAndReadAll(sql)).getRowObjectsJson()
}

/** Joins copies of the files; gives the path of the result. */
function joinFiles(name: string, [first = '', ...others]: readonly string[]): string {
  const target = join(folder, name)
  copyFileSync(first, target)
  for (const other of others) appendParquet(target, other)
  return target
}

describe('files that are joined', () => {
  let parts: string[] = []
  let joined = ''

  beforeAll(async () => {
    parts = [await write('a', 0, 5000), await write('b', 5000, 1), await write('c', 5001, 9000)]
    joined = joinFiles('joined', parts)
  })

  it('hold the rows of all, in their order', async () => {
    const list = parts.map((part) => `'${part}'`).join(', ')
    expect(await read(`FROM read_parquet('${joined}')`)).toEqual(await read(`FROM read_parquet([${list}])`))
  })

  it('are found by their statistics and bloom filters, wherever a row lies', async () => {
    for (const number of [0, 4999, 5000, 5001, 14_000]) {
      const rows = await read(`SELECT repeated FROM read_parquet('${joined}') WHERE number = ${number}`)
      expect(rows).toEqual([{ repeated: `name ${number % 7}` }])
    }
    const found = await read(`SELECT number FROM read_parquet('${joined}') WHERE repeated = 'name 3'`)
    expect(found).toHaveLength(Array.from({ length: 14_001 }, (_, i) => i).filter((i) => i % 7 === 3).length)
  })

  it('number their row groups through', async () => {
    const groups = await read(
      `SELECT DISTINCT row_group_id::INT AS id, row_group_num_rows::INT AS rows
       FROM parquet_metadata('${joined}') ORDER BY id`,
    )
    expect(groups.map((group) => group['rows'])).toEqual([2048, 2048, 904, 1, 2048, 2048, 2048, 2048, 808])
  })

  it('tell how many rows they have', async () => {
    expect(await read(`SELECT num_rows::INT AS rows FROM parquet_file_metadata('${joined}')`)).toEqual([
      { rows: 14_001 },
    ])
  })

  it('have no place of a column where none was told', async () => {
    const places = `SELECT DISTINCT file_offset::INT AS place FROM parquet_metadata`
    expect(await read(`${places}('${parts[0]}')`)).toEqual([{ place: 0 }])
    expect(await read(`${places}('${joined}')`)).toEqual([{ place: 0 }])
  })

  it('say of themselves what the last one says', async () => {
    expect(
      await read(`SELECT decode(key) AS key, decode(value) AS value FROM parquet_kv_metadata('${joined}')`),
    ).toEqual([{ key: 'written_for', value: 'c' }])
  })

  it('are the same bytes in whatever steps they were joined', () => {
    const [first = '', ...rest] = parts
    const two = joinFiles('two', [first, rest[0] ?? ''])
    expect(readFileSync(joinFiles('stepwise', [two, rest[1] ?? ''])).equals(readFileSync(joined))).toBe(true)
  })
})

/** Runs `work` on a system that writes only `atMost` bytes of what it is given at a time. */
function withShortWrites<T>(atMost: number, work: () => T): T {
  const { writeSync } = fs
  const short = (file: number, bytes: NodeJS.ArrayBufferView, ...[at, length, position]: number[]) =>
    writeSync(file, bytes, at, Math.min(length ?? 0, atMost), position)
  Object.assign(fs, { writeSync: short })
  syncBuiltinESMExports()
  try {
    return work()
  } finally {
    Object.assign(fs, { writeSync })
    syncBuiltinESMExports()
  }
}

it('files are joined to the last byte where the system takes only some bytes at a time', async () => {
  const parts = [await write('left', 0, 5000), await write('right', 5000, 5000)]
  const joined = withShortWrites(1000, () => joinFiles('in-short-writes', parts))
  expect(readFileSync(joined).equals(readFileSync(joinFiles('at-once', parts)))).toBe(true)
})

it('a file without rows changes the metadata alone', async () => {
  const some = await write('some', 0, 10)
  const joined = joinFiles('with-none', [some, await write('none', 0, 0)])
  expect(await read(`FROM read_parquet('${joined}')`)).toEqual(await read(`FROM read_parquet('${some}')`))
  const behind = joinFiles('none-with', [await write('none', 0, 0), some])
  expect(await read(`FROM read_parquet('${behind}')`)).toEqual(await read(`FROM read_parquet('${some}')`))
})

it('a file whose footer becomes shorter ends where that ends', async () => {
  const notes = 'x'.repeat(10_000)
  const wordy = await write('wordy', 0, 10, { notes })
  const joined = joinFiles('no-longer-wordy', [wordy, await write('laconic', 0, 0, { notes: 'x' })])
  expect(readFileSync(joined).length).toBe(readFileSync(wordy).length - notes.length)
  expect(await read(`FROM read_parquet('${joined}')`)).toEqual(await read(`FROM read_parquet('${wordy}')`))
})

describe('refuses, and leaves the file as it was,', () => {
  it.each([
    ['another name', 'i AS other'],
    ['another type', 'CAST(i AS INTEGER) AS number'],
    ['one column more', 'i AS number, i AS more'],
  ])('%s', async (_, columns) => {
    const target = await write('target', 0, 10, { columns: 'i AS number' })
    const before = readFileSync(target)
    const other = await write('other', 10, 10, { columns })
    expect(() => appendParquet(target, other)).toThrow(`${other} has other columns than ${target}`)
    expect(readFileSync(target).equals(before)).toBe(true)
  })

  it.each([
    ['a file cut short', (path: string) => truncateSync(path, 300)],
    ['a file with hardly anything', (path: string) => truncateSync(path, 5)],
    ['an empty file', (path: string) => truncateSync(path, 0)],
    ['no Parquet', (path: string) => writeFileSync(path, 'ts,app_id\n'.repeat(100))],
    ['a footer of nonsense', (path: string) => writeFileSync(path, nonsense())],
    ['a footer longer than the file', (path: string) => writeFileSync(path, nonsense(1_000_000))],
  ])('%s', async (_, damage) => {
    const target = await write('target', 0, 10, { columns: 'i AS number' })
    const before = readFileSync(target)
    const other = await write('other', 10, 10, { columns: 'i AS number' })
    damage(other)
    expect(() => appendParquet(target, other)).toThrow(`${other} is no whole Parquet file`)
    expect(readFileSync(target).equals(before)).toBe(true)
  })
})

/** What ends as a Parquet file does, after a footer of ones that says to be so long. */
function nonsense(length = 500): Buffer {
  const tail = Buffer.alloc(8)
  tail.writeUInt32LE(length)
  tail.write('PAR1', 4)
  return Buffer.concat([Buffer.from('PAR1'), Buffer.alloc(500, 0xff), tail])
}

describe('of another writer, which tells all places there are,', () => {
  const [I16, I64, BINARY, LIST, STRUCT] = [4, 6, 8, 9, 12]
  const places = (first: number, ids: readonly number[]) =>
    ids.map((id, index) => ({ id, type: I64, value: BigInt(first + index) }))
  const listOf = (id: number, type: number, item: Value) => ({
    id,
    type: LIST,
    value: { type, items: [item] },
  })

  /** A row, whose eight places lead to the eight bytes of `data`, one after the other as the footer tells them. */
  function writeOne(name: string, data: string): string {
    const metadata = { fields: places(5, [9, 10, 11, 14]) }
    const column = {
      fields: [...places(4, [2]), { id: 3, type: STRUCT, value: metadata }, ...places(9, [4, 6])],
    }
    const group = {
      fields: [listOf(1, STRUCT, column), ...places(11, [5]), { id: 7, type: I16, value: 0n }],
    }
    const footer = encodeStruct({
      fields: [
        listOf(2, BINARY, Buffer.from('schema')),
        { id: 3, type: I64, value: 1n },
        listOf(4, STRUCT, group),
        listOf(5, BINARY, Buffer.from(name)),
        { id: 6, type: BINARY, value: Buffer.from('another writer') },
      ],
    })
    const tail = Buffer.alloc(4)
    tail.writeUInt32LE(footer.length)
    const path = join(folder, name)
    writeFileSync(path, Buffer.concat([Buffer.from(`PAR1${data}`), footer, tail, Buffer.from('PAR1')]))
    return path
  }

  /** The integers of one type, as deep as they lie. */
  function integersIn(value: Value, wanted: number): bigint[] {
    if (typeof value !== 'object' || value instanceof Uint8Array) return []
    if ('items' in value) return value.items.flatMap((item) => integersIn(item, wanted))
    return value.fields.flatMap(({ type, value: inner }) =>
      typeof inner === 'bigint' && type === wanted ? [inner] : integersIn(inner, wanted),
    )
  }

  it('lead to the same data as before, and number their row groups', () => {
    const joined = joinFiles('all-places', [writeOne('small', 'abcdefgh'), writeOne('capital', 'ABCDEFGH')])
    const bytes = readFileSync(joined)
    const footer = decodeStruct(bytes.subarray('PAR1abcdefghABCDEFGH'.length))
    const [rows, ...found] = integersIn(footer, I64)
    expect(rows).toBe(2n)
    expect(found.map((place) => String.fromCharCode(bytes[Number(place)] ?? 0)).join('')).toBe(
      'abcdefghABCDEFGH',
    )
    expect(integersIn(footer, I16)).toEqual([0n, 1n])
    expect(footer.fields.map(({ id }) => id)).toEqual([2, 3, 4, 5, 6])
    expect(footer.fields[3]?.value).toEqual({ type: BINARY, items: [Buffer.from('capital')] })
  })
})

it('a footer is written as it was read, to the last byte', async () => {
  const bytes = readFileSync(await write('whole', 0, 5000))
  const length = bytes.readUInt32LE(bytes.length - 8)
  const footer = bytes.subarray(bytes.length - 8 - length, bytes.length - 8)
  expect(footer.equals(encodeStruct(decodeStruct(footer)))).toBe(true)
})

it('a footer that another program wrote is written as it was read, to the last byte', () => {
  const parts = [
    [0x11], // field 1: true
    [0x05, 34, 1], // field 17, too far away for one byte: -1
    [0x19, 0xf5, 15, ...Array.from({ length: 15 }, () => 3)], // a list too long for one byte: -2, fifteen times
    [0x1a, 0x21, 1, 2], // a set: true, false
    [0x17, 1, 2, 3, 4, 5, 6, 7, 8], // a double
    [0x13, 0xff], // a byte
    [0xf6, ...Array.from({ length: 9 }, () => 0xff), 1], // field 36: the least integer of 64 bits
    [0x06, 2, 4], // field 1 again, behind it: 2
    [0],
  ]
  const bytes = Buffer.from(parts.flat())
  const { fields } = decodeStruct(bytes)
  expect(fields.map(({ id }) => id)).toEqual([1, 17, 18, 19, 20, 21, 36, 1])
  expect(fields.map(({ value }) => value).filter((value) => typeof value === 'bigint')).toEqual([
    -1n,
    -(2n ** 63n),
    2n,
  ])
  expect(encodeStruct({ fields })).toEqual(bytes)
})

it('a footer that ends too early is none, wherever it ends', async () => {
  const bytes = readFileSync(await write('cut', 0, 10))
  const footer = bytes.subarray(bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8), bytes.length - 8)
  for (let length = 0; length < footer.length; length++) {
    expect(() => decodeStruct(footer.subarray(0, length))).toThrow(RangeError)
  }
})
