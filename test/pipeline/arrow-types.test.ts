/** Columns of Arrow files that other programs write: types with an accessor of their own, and compressed buffers. */
import {
  compressionRegistry,
  CompressionType,
  DateDay,
  DateMillisecond,
  Decimal,
  Float64,
  Int64,
  makeData,
  Null,
  RecordBatchStreamWriter,
  Table,
  tableToIPC,
  Vector,
  vectorFromArray,
} from 'apache-arrow'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { afterAll, expect, it } from 'vitest'
import { readArrow } from '../../pipeline/sources/arrow-file.ts'
import { TemporaryFolders, writeRaw } from '../support/nightly.ts'

const folders = new TemporaryFolders()

afterAll(() => folders.removeAll())

/** Every row of a file with these bytes, its columns in their order. */
async function rowsOf(content: Uint8Array, columns: readonly string[]) {
  const folder = folders.make()
  writeRaw(folder, 'rows.arrow', content)
  const path = join(folder, 'raw', 'rows.arrow')
  const file = { path, name: 'rows.arrow', format: 'arrow', compression: 'none', stamp: '' } as const
  return (await Array.fromAsync(readArrow(file, columns, []))).flat()
}

function valuesOf(vector: Vector): Promise<(string | null)[]> {
  return rowsOf(tableToIPC(new Table({ value: vector }), 'file'), ['value']).then((rows) =>
    rows.map(([value = null]) => value),
  )
}

/** Numbers of 128 bits, the lowest word first. */
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
  ['decimals with digits behind the point', decimals(2, [200n, -5n, 12345n]), ['2.00', '-0.05', '123.45']],
  [
    'large floats',
    vectorFromArray([1e22, 0.5, 9007199254740992], new Float64()),
    ['10000000000000000000000', '0.5', '9007199254740992'],
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
