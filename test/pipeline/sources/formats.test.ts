/** CONTRACT 7: the same rows in every format and type give the same dataset. */
import {
  Dictionary,
  Int32,
  Int64,
  Table,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  Uint64,
  Utf8,
  tableToIPC,
  vectorFromArray,
} from 'apache-arrow'
import type { DataType } from 'apache-arrow'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { beforeAll, expect, it } from 'vitest'
import { makeFolder } from '../../support/folders.ts'
import { publish, queryCurrent, register, writeParquet, writeRaw } from '../../support/pipeline/nightly.ts'
import { FORMATS, rawFile, type RawColumn } from '../../support/pipeline/raw-files.ts'

const DAY = '2025-01-01'
const APPS = ['One', 'Two', 'Three'].map((name, index) => `${index + 1},${name},public,,,2025-01-01`)

/** In each pair the larger row is the newer one too, so that types with coarser times agree. */
const TIMES = (
  '00:00:00.000000 00:00:00.000000 11:22:33.123125 11:22:33.123250 12:00:00.000000 12:00:00.000000 ' +
  '13:00:00.000000 13:00:00.000000 23:59:59.123125'
).split(' ')
const COUNTS = {
  app_id: [1n, 1n, 1n, 2n, 2n, 2n, 3n, 3n, 3n],
  prompt_tokens: [10n, 10n, 200n, 300n, null, null, 9007199254740991n, 9007199254740991n, 0n],
  completion_tokens: [1n, 1n, 20n, 30n, null, null, 0n, 0n, 4000000000n],
  requests: [null, 7n, 1n, 1n, 3n, null, 0n, 0n, 1000000n],
}
const IDS = [null, null, 'a "quoted", id', 'a "quoted", id', '', '', 'twice', 'twice', 'ümläut']

/** The totals of the rows, added up by hand. */
const EXPECTED = [
  { app_id: '1', requests: '8', prompt_tokens: '20', completion_tokens: '2' },
  { app_id: '2', requests: '5', prompt_tokens: '300', completion_tokens: '30' },
  { app_id: '3', requests: '1000000', prompt_tokens: '9007199254740991', completion_tokens: '4000000000' },
]

function columnsOf(day: string): RawColumn[] {
  return [['ts', TIMES.map((time) => `${day}T${time}Z`)], ...Object.entries(COUNTS), ['request_id', IDS]]
}

function csv(day: string): string {
  return Buffer.from(rawFile('csv', columnsOf(day))).toString()
}

/** The rows in Parquet as DuckDB writes it, times and counts in other types. */
async function writeAs(types: Readonly<Record<string, string>>, path: string, day: string): Promise<void> {
  const names = columnsOf(day).map(([name]) => name)
  const rows = TIMES.map((_, row) => {
    const cells = columnsOf(day).map(([, values]) => values[row] ?? null)
    return `(${cells.map((cell) => (typeof cell === 'string' ? `'${cell}'` : String(cell))).join()})`
  })
  const typed = names.map((name) => `${name}::${types[name] ?? 'VARCHAR'} AS ${name}`)
  await writeParquet(path, `SELECT ${typed.join()} FROM (VALUES ${rows.join()}) AS rows(${names.join()})`)
}

type ArrowForm = {
  /** Types of columns; a time as text otherwise. */
  readonly types?: Readonly<Record<string, DataType>>
  /** The unit of times in milliseconds. */
  readonly unit?: number
  readonly format?: 'file' | 'stream'
  readonly batchRows?: number
}

function arrow({ types = {}, unit = 1 / 8, format = 'file', batchRows = 1000 }: ArrowForm, day: string) {
  const millisecondsOf = (time: string) =>
    Math.floor((Date.parse(`${day}T${time}Z`) + Number(`0.${time.slice(-3)}`)) / unit) * unit
  const vectors = columnsOf(day).map(([name, cells]) => {
    const type = types[name] ?? (typeof cells.at(-1) === 'bigint' ? new Int64() : new Utf8())
    if (name === 'ts' && types['ts'] !== undefined)
      return [name, vectorFromArray(TIMES.map(millisecondsOf), type)] as const
    return [name, vectorFromArray(type instanceof Int32 ? cells.map(Number) : cells, type)] as const
  })
  const table = new Table(Object.fromEntries(vectors))
  const [first = table, ...further] = Array.from(
    { length: Math.ceil(TIMES.length / batchRows) },
    (_, batch) => table.slice(batch * batchRows, (batch + 1) * batchRows),
  )
  return tableToIPC(first.concat(...further), format)
}

const INTEGERS = {
  app_id: 'BIGINT',
  prompt_tokens: 'BIGINT',
  completion_tokens: 'BIGINT',
  requests: 'BIGINT',
}
const countsAs = (type: string) => ({ prompt_tokens: type, completion_tokens: type, requests: type })

type Variant = readonly [name: string, ending: string, content: (day: string) => string | Uint8Array]

const VARIANTS: readonly Variant[] = [
  ...FORMATS.map((format): Variant => [format, format, (day) => rawFile(format, columnsOf(day))]),
  ['CSV with \\r\\n', 'csv', (day) => csv(day).replaceAll('\n', '\r\n')],
  ['CSV with numbers such as 5.0', 'csv', (day) => csv(day).replaceAll(/,(\d+)/g, ',$1.0')],
  ['CSV with columns without a name', 'csv', (day) => csv(day).replaceAll(/\n|$/g, ',,$&')],
  ['CSV', 'csv.gz', (day) => gzipSync(csv(day))],
  ['CSV', 'csv.zst', (day) => zstdCompressSync(csv(day))],
  ...(
    [
      ['times as text', {}],
      ['a stream of many batches', { format: 'stream', batchRows: 1 }],
      ['seconds', { types: { ts: new TimestampSecond() }, unit: 1000 }],
      ['milliseconds', { types: { ts: new TimestampMillisecond() }, unit: 1 }],
      ['microseconds', { types: { ts: new TimestampMicrosecond() } }],
      ['nanoseconds', { types: { ts: new TimestampNanosecond() } }],
      ['unsigned counts', { types: { prompt_tokens: new Uint64(), completion_tokens: new Uint64() } }],
      ['ids of 32 bits', { types: { app_id: new Int32() } }],
      ['a dictionary', { types: { request_id: new Dictionary(new Utf8(), new Int32()) } }],
    ] as const satisfies readonly (readonly [string, ArrowForm])[]
  ).map(([name, form]): Variant => [`Arrow with ${name}`, 'arrow', (day) => arrow(form, day)]),
]

/** Types of Parquet, of times or counts. */
const PARQUET = [
  ...['TIMESTAMP', 'TIMESTAMPTZ', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS'].map((ts) => ({ ts })),
  { ...countsAs('DOUBLE'), app_id: 'DOUBLE' },
  { ...countsAs('UBIGINT'), app_id: 'UINTEGER' },
  countsAs('DECIMAL(20, 2)'),
  countsAs('DECIMAL(38, 0)'),
  { ...countsAs('VARCHAR'), app_id: 'VARCHAR' },
  { app_id: 'TINYINT' },
]

const dayOf = (index: number) => new Date(Date.UTC(2025, 0, 1 + index)).toISOString().slice(0, 10)
const dataDir = makeFolder()

beforeAll(async () => {
  register(dataDir, APPS)
  for (const [index, [, ending, content]] of VARIANTS.entries())
    writeRaw(dataDir, `usage/date=${dayOf(index)}/rows.${ending}`, content(dayOf(index)))
  for (const [index, types] of PARQUET.entries()) {
    const day = dayOf(VARIANTS.length + index)
    await writeAs({ ...INTEGERS, ...types }, join(dataDir, `raw/usage/date=${day}/rows.parquet`), day)
  }
  await publish(dataDir, '2025-03-01T02:00:00Z')
})

it.each(
  [
    ...VARIANTS.map(([name, ending]) => `${name}, .${ending}`),
    ...PARQUET.map((types) => `Parquet ${JSON.stringify(types)}`),
  ].map((name, index) => [name, dayOf(index)] as const),
)('%s gives the same day', async (_, day) => {
  expect(await dailyOf(dataDir, day)).toEqual(EXPECTED)
})

it('a day of Parquet keeps every digit of types past 2^62, and counts one request a row in a file without requests', async () => {
  const folder = makeFolder()
  const largest = 2n ** 62n - 1n
  const row = (type: string) =>
    `SELECT TIMESTAMP '${DAY} 01:00:00' AS ts, 1 AS app_id, ${largest}::${type} AS prompt_tokens, 0 AS completion_tokens`
  const path = (name: string) => join(folder, `raw/usage/date=${DAY}/${name}.parquet`)
  register(folder, APPS)
  await writeParquet(path('singles'), row('UBIGINT'))
  await writeParquet(path('summed'), `${row('DECIMAL(30, 0)')}, 70 AS requests`)
  await publish(folder, '2025-03-01T02:00:00Z')
  expect(await dailyOf(folder, DAY)).toEqual([
    { app_id: '1', requests: '71', prompt_tokens: String(2n * largest), completion_tokens: '0' },
  ])
})

it.each(["it's one br[ack]et * star?", 'a "double" #%20 ü\\n {curly},$dollar;', 'app_id=7', 'line=7'])(
  'a DATA_DIR and files with the name %s are read',
  async (name) => {
    // DuckDB cannot open a database below a folder with a question mark; a raw file may have one.
    const odd = makeFolder(name.replaceAll('?', ''))
    register(odd, APPS)
    for (const [index, format] of FORMATS.entries()) {
      const row: readonly RawColumn[] = [
        ['ts', [DAY]],
        ['app_id', [1n]],
        ['prompt_tokens', [5n]],
      ]
      const columns = [...row, ['completion_tokens', [BigInt(index)]]] as const
      writeRaw(odd, `usage/date=${DAY}/${name}.${format}`, rawFile(format, columns))
    }
    await publish(odd, '2025-03-01T02:00:00Z')
    expect(await dailyOf(odd, DAY)).toEqual([
      { app_id: '1', requests: '4', prompt_tokens: '20', completion_tokens: '6' },
    ])
  },
)

function dailyOf(folder: string, day: string) {
  return queryCurrent(
    folder,
    `SELECT app_id, requests, prompt_tokens, completion_tokens FROM app_daily
     WHERE day = '${day}' ORDER BY app_id`,
  )
}
