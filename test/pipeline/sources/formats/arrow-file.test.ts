/** Columns in Arrow files of other programs: types with an own accessor, and compressed buffers. */
import {
  Bool,
  compressionRegistry,
  CompressionType,
  DateDay,
  DateMillisecond,
  Decimal,
  Dictionary,
  Float64,
  Int32,
  Int64,
  makeData,
  Null,
  RecordBatchStreamWriter,
  Table,
  tableToIPC,
  TimestampMillisecond,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { afterAll, expect, it } from 'vitest'
import { readArrow } from '../../../../pipeline/sources/formats/arrow-file.ts'
import { TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()

afterAll(() => folders.removeAll())

/** The rows of a file with these bytes, in column order and in the batches of the reader. */
async function slicesOf(content: Uint8Array, columns: readonly string[]) {
  const folder = folders.make()
  writeRaw(folder, 'rows.arrow', content)
  const path = join(folder, 'raw', 'rows.arrow')
  const file = {
    path,
    name: 'rows.arrow',
    format: 'arrow',
    compression: 'none',
    bytes: 0,
    stamp: '',
  } as const
  return await Array.fromAsync(readArrow(file, { required: [], optional: columns }))
}

async function rowsOf(content: Uint8Array, columns: readonly string[]) {
  return (await slicesOf(content, columns)).flat()
}

function valuesOf(vector: Vector): Promise<(string | null)[]> {
  return rowsOf(tableToIPC(new Table({ value: vector }), 'file'), ['value']).then((rows) =>
    rows.map(([value = null]) => value),
  )
}

/** Numbers of 128 bits, lowest word first. */
function decimals(scale: number, values: readonly bigint[]): Vector {
  const words = values.flatMap((value) =>
    [0n, 32n, 64n, 96n].map((shift) => Number((BigInt.asUintN(128, value) >> shift) & 0xffffffffn)),
  )
  return new Vector([
    makeData({ type: new Decimal(scale, 38, 128), length: values.length, data: Uint32Array.from(words) }),
  ])
}

it.each([
  ['Null', new Vector([makeData({ type: new Null(), length: 2 })]), [null, null]],
  [
    'days',
    vectorFromArray([new Date('2026-01-05'), null], new DateDay()),
    ['2026-01-05T00:00:00.000Z', null],
  ],
  [
    'days in milliseconds',
    vectorFromArray([new Date('2026-01-05')], new DateMillisecond()),
    ['2026-01-05T00:00:00.000Z'],
  ],
  ['decimals', decimals(0, [10n ** 30n, -7n, 0n]), ['1000000000000000000000000000000', '-7', '0']],
  ['decimals with digits behind the point', decimals(2, [200n, -5n, 12345n]), ['2', '-0.05', '123.45']],
  [
    'floats, with an exponent where they may have been rounded,',
    vectorFromArray([1e22, 0.5, 9007199254740991], new Float64()),
    ['1e+22', '0.5', '9007199254740991'],
  ],
])('%s are read as text', async (_, vector, expected) => {
  expect(await valuesOf(vector)).toEqual(expected)
})

function compressed(type: CompressionType): Uint8Array {
  const table = new Table({
    value: vectorFromArray(
      Array.from({ length: 1000 }, () => 7n),
      new Int64(),
    ),
  })
  const writer = new RecordBatchStreamWriter({ compressionType: type })
  writer.write(table)
  return writer.finish().toUint8Array(true)
}

it('buffers compressed with ZSTD are read', async () => {
  compressionRegistry.set(CompressionType.ZSTD, {
    ...compressionRegistry.get(CompressionType.ZSTD),
    encode: zstdCompressSync,
  })
  const rows = await rowsOf(compressed(CompressionType.ZSTD), ['value'])
  expect(rows).toHaveLength(1000)
  expect(new Set(rows.flat())).toEqual(new Set(['7']))
})

it('decimals of negative scale are read with their zeros, beside other columns, in files and in streams', async () => {
  const values = decimals(-2, [12n, -3n])
  expect(await valuesOf(values)).toEqual(['1200', '-300'])
  const table = new Table({ odd: values, value: vectorFromArray([1n, 2n], new Int64()) })
  expect(await rowsOf(tableToIPC(table, 'file'), ['value'])).toEqual([['1'], ['2']])
  expect(await rowsOf(tableToIPC(table, 'stream'), ['value'])).toEqual([['1'], ['2']])
})

it('a large record batch is read in slices, with every value in its row', async () => {
  const numbers = Array.from({ length: 25_000 }, (_, index) => index)
  const table = new Table({
    wide: vectorFromArray(
      numbers.map((number) => (number % 3 === 0 ? null : BigInt(number))),
      new Int64(),
    ),
    time: vectorFromArray(
      numbers.map((number) => (number % 5 === 0 ? null : new Date(number * 1000))),
      new TimestampMillisecond(),
    ),
    text: vectorFromArray(
      numbers.map((number) => (number % 7 === 0 ? null : `text ${number}`)),
      new Utf8(),
    ),
    named: vectorFromArray(
      numbers.map((number) => `name ${number % 11}`),
      new Dictionary(new Utf8(), new Int32()),
    ),
    flag: vectorFromArray(
      numbers.map((number) => number % 2 === 0),
      new Bool(),
    ),
    decimal: decimals(0, numbers.map(BigInt)),
  })
  expect(table.batches).toHaveLength(1)
  const slices = await slicesOf(tableToIPC(table, 'file'), [
    'wide',
    'time',
    'text',
    'named',
    'flag',
    'decimal',
  ])
  expect(slices.map(({ length }) => length)).toEqual([10_000, 10_000, 5_000])
  expect(slices.flat()).toEqual(
    numbers.map((number) => [
      number % 3 === 0 ? null : String(number),
      number % 5 === 0 ? null : new Date(number * 1000).toISOString(),
      number % 7 === 0 ? null : `text ${number}`,
      `name ${number % 11}`,
      String(number % 2 === 0),
      String(number),
    ]),
  )
})

it('a second stream in a file is read too', async () => {
  const streams = [[1, 2], [3]].map((numbers) =>
    tableToIPC(new Table({ value: vectorFromArray(numbers, new Int32()) }), 'stream'),
  )
  const rows = await rowsOf(Buffer.concat(streams), ['value'])
  expect(rows.flat()).toEqual(['1', '2', '3'])
})

it('a file shorter than an end mark is named', async () => {
  await expect(rowsOf(Buffer.from('ARROW'), ['value'])).rejects.toThrow(
    'rows.arrow is not a whole Arrow IPC file: its end mark is missing',
  )
})

/** A stream in format 0.14: without a mark before the length of a message. */
function legacyStream(stream: Uint8Array): Buffer {
  const bytes = Buffer.from(stream)
  const mark = Buffer.from('ffffffff', 'hex')
  for (let at = 0; at >= 0; at = bytes.indexOf(mark, at + 1)) {
    const length = bytes.readInt32LE(at + 4)
    if (length === 0) return bytes.subarray(0, at + 4).fill(0, at)
    bytes.writeInt32LE(length + 4, at)
    bytes.copyWithin(at + 4, at + 8, at + 8 + length).fill(0, at + 4 + length, at + 8 + length)
  }
  throw new Error('The stream has no end')
}

it('a stream of format 0.14 is read, and rejected without its end mark', async () => {
  const table = new Table({ value: vectorFromArray([1n, 2n], new Int64()) })
  const stream = legacyStream(tableToIPC(table, 'stream'))
  expect(await rowsOf(stream, ['value'])).toEqual([['1'], ['2']])
  await expect(rowsOf(stream.subarray(0, -4), ['value'])).rejects.toThrow('its end mark is missing')
})
