/** CONTRACT 7: the same rows in every format and spelling give the same dataset. */
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
  Vector,
  makeData,
  tableToIPC,
  vectorFromArray,
} from 'apache-arrow'
import type { DataType, Timestamp } from 'apache-arrow'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { beforeAll, expect, it } from 'vitest'
import { makeFolder } from '../../support/folders.ts'
import { publish, queryCurrent, withDatabase, writeRaw } from '../../support/pipeline/nightly.ts'

const AS_OF = '2025-03-01T02:00:00Z'

const REGISTRY = `app_id,app_name,visibility,subcategories,alias_of,updated_at
1,One,public,cli-agent|game,,2025-01-01T00:00:00Z
2,Two,public,,,2025-01-01T00:00:00Z
3,Three,public,,,2025-01-01T00:00:00Z
`

const COLUMNS = ['ts', 'app_id', 'prompt_tokens', 'completion_tokens', 'requests', 'request_id'] as const
type Row = readonly [string, bigint, bigint | null, bigint | null, bigint | null, string | null]

/** In each pair the larger row is the newer one too, so that formats with coarser times agree. */
const ROWS: readonly Row[] = [
  ['00:00:00.000000', 1n, 10n, 1n, null, null],
  ['00:00:00.000000', 1n, 10n, 1n, 7n, null],
  ['11:22:33.123125', 1n, 200n, 20n, 1n, 'a "quoted", id'],
  ['11:22:33.123250', 2n, 300n, 30n, 1n, 'a "quoted", id'],
  ['12:00:00.000000', 2n, null, null, 3n, ''],
  ['12:00:00.000000', 2n, null, null, null, ''],
  ['13:00:00.000000', 3n, 9007199254740991n, 0n, 0n, 'twice'],
  ['13:00:00.000000', 3n, 9007199254740991n, 0n, 0n, 'twice'],
  ['23:59:59.123125', 3n, 0n, 4000000000n, 1000000n, 'ümläut'],
]

/** The totals of the rows, added up by hand. */
const EXPECTED = [
  { app_id: '1', requests: '8', prompt_tokens: '20', completion_tokens: '2' },
  { app_id: '2', requests: '5', prompt_tokens: '300', completion_tokens: '30' },
  { app_id: '3', requests: '1000000', prompt_tokens: '9007199254740991', completion_tokens: '4000000000' },
]

const scratch = makeFolder('scratch')
const dataDir = makeFolder()

type Content = (day: string) => Promise<string | Uint8Array> | Uint8Array

const MICROSECONDS = [new TimestampMicrosecond(), 1_000_000n] as const

const VARIANTS: readonly (readonly [name: string, ending: string, content: Content])[] = [
  ['CSV', 'csv', csv],
  ['CSV with \\r\\n', 'csv', async (day) => (await csv(day)).replaceAll('\n', '\r\n')],
  ['CSV after a byte order mark', 'csv', async (day) => `\uFEFF${await csv(day)}`],
  ['CSV without a last line break', 'csv', async (day) => (await csv(day)).trimEnd()],
  ['CSV with columns without a name', 'csv', async (day) => (await csv(day)).replaceAll('\n', ',,\n')],
  ['CSV', 'csv.gz', async (day) => gzipSync(await csv(day))],
  ['CSV', 'csv.zst', async (day) => zstdCompressSync(await csv(day))],
  ['NDJSON', 'ndjson', ndjson],
  ['NDJSON', 'ndjson.gz', async (day) => gzipSync(await ndjson(day))],
  ['NDJSON', 'ndjson.zst', async (day) => zstdCompressSync(await ndjson(day))],
  [
    'NDJSON with numbers as text',
    'ndjson',
    async (day) => (await ndjson(day)).replaceAll(/":(\d+)/g, '":"$1.0"'),
  ],
  ...[
    {},
    { ts: 'TIMESTAMPTZ' },
    { ts: 'TIMESTAMP_S' },
    { ts: 'TIMESTAMP_MS' },
    { ts: 'TIMESTAMP_NS' },
    { count: 'DOUBLE', app: 'DOUBLE' },
    { count: 'UBIGINT', app: 'UINTEGER' },
    { count: 'DECIMAL(20, 2)' },
    { count: 'DECIMAL(38, 0)' },
    { ts: 'VARCHAR', count: 'VARCHAR', app: 'VARCHAR' },
    { app: 'TINYINT' },
  ].map((types) => [`Parquet ${JSON.stringify(types)}`, 'parquet', parquet(types)] as const),
  ['Arrow file', 'arrow', arrow()],
  ['Arrow stream', 'arrow', arrow({ format: 'stream' })],
  ['Arrow stream of many batches', 'arrow', arrow({ format: 'stream', batchRows: 1 })],
  ['Arrow with seconds', 'arrow', arrow({ ts: [new TimestampSecond(), 1n] })],
  ['Arrow with milliseconds', 'arrow', arrow({ ts: [new TimestampMillisecond(), 1000n] })],
  ['Arrow with nanoseconds', 'arrow', arrow({ ts: [new TimestampNanosecond(), 1_000_000_000n] })],
  ['Arrow with time as text', 'arrow', arrow({ ts: 'text' })],
  ['Arrow with Uint64', 'arrow', arrow({ count: new Uint64() })],
  ['Arrow with Int32', 'arrow', arrow({ app: new Int32() })],
  ['Arrow with a dictionary', 'arrow', arrow({ id: new Dictionary(new Utf8(), new Int32()) })],
]

const dayOf = (index: number) => new Date(Date.UTC(2025, 0, 1 + index)).toISOString().slice(0, 10)

beforeAll(async () => {
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  for (const [index, [, ending, content]] of VARIANTS.entries())
    writeRaw(dataDir, `usage/date=${dayOf(index)}/rows.${ending}`, await content(dayOf(index)))
  await publish(dataDir, AS_OF)
})

it.each(VARIANTS.map(([name, ending], index) => [name, ending, dayOf(index)]))(
  '%s, .%s, gives the same day',
  async (_name, _ending, day) => {
    expect(await dailyOf(dataDir, day)).toEqual(EXPECTED)
  },
)

it('a day may contain every format, and duplicates are found across formats', async () => {
  const day = '2025-01-01'
  // An id on most rows of a day would be none.
  const others = `${day}T00:00:00Z,9,1,1\n`.repeat(20)
  const mixed = await folderOf(day, {
    'a.csv.gz': gzipSync(linesWith(/^ts,|twice/, await csv(day))),
    'b.ndjson.zst': zstdCompressSync(linesWith(/twice/, await ndjson(day))),
    'c.parquet': await parquet()(day),
    'd.arrow': arrow()(day, ROWS.slice(6, 8)),
    'e.csv': `ts,app_id,prompt_tokens,completion_tokens\n${others}`,
  })
  expect(await dailyOf(mixed, day)).toEqual(EXPECTED)
})

it('unsigned and decimal values past 2^62 keep every digit', async () => {
  const day = '2025-01-01'
  const largest = 2n ** 62n - 1n
  const file = (type: string) =>
    written(
      'parquet',
      `SELECT TIMESTAMP '${day} 01:00:00' AS ts, 1 AS app_id, 0 AS completion_tokens, ${largest}::${type} AS prompt_tokens`,
    )
  const files = { 'a.parquet': await file('UBIGINT'), 'b.parquet': await file('DECIMAL(30, 0)') }
  expect(await dailyOf(await folderOf(day, files), day)).toEqual([
    { app_id: '1', requests: '2', prompt_tokens: String(2n * largest), completion_tokens: '0' },
  ])
})

it('a row of Parquet counts its requests, or one in a file without that column', async () => {
  const day = '2025-01-01'
  const row = `SELECT TIMESTAMP '${day} 01:00:00' AS ts, 1 AS app_id, 2 AS prompt_tokens, 3 AS completion_tokens`
  const files = {
    'singles.parquet': await written('parquet', `${row} FROM range(4)`),
    'summed.parquet': await written('parquet', `${row}, 70 AS requests`),
  }
  expect(await dailyOf(await folderOf(day, files), day)).toMatchObject([
    { requests: '74', prompt_tokens: '10' },
  ])
})

it.each(["it's one br[ack]et * star?", 'a "double" #%20 ü\\n {curly},$dollar;', 'app_id=7', 'line=7'])(
  'a DATA_DIR and files with the name %s are read',
  async (name) => {
    const day = '2025-01-01'
    // DuckDB cannot open a database below a folder with a question mark; a raw file may have one.
    const odd = makeFolder(name.replaceAll('?', ''))
    const files = {
      [`${name}.csv`]: await csv(day),
      [`${name}.ndjson.gz`]: gzipSync(`${(await ndjson(day)).split('\n')[0]}\n`),
      [`${name}.arrow`]: arrow({ format: 'stream' })(day, ROWS.slice(0, 1)),
      [`${name}.parquet`]: await parquet()(day, ROWS.slice(0, 1)),
    }
    const [first] = await dailyOf(await folderOf(day, files, odd), day)
    // The first row of ROWS is repeated three times.
    expect(first).toEqual({ app_id: '1', requests: '11', prompt_tokens: '50', completion_tokens: '5' })
  },
)

/** A DATA_DIR with these files of a day, published. */
async function folderOf(
  day: string,
  files: Readonly<Record<string, string | Uint8Array>>,
  folder = makeFolder(),
): Promise<string> {
  writeRaw(folder, 'apps/registry.csv', REGISTRY)
  for (const [name, content] of Object.entries(files)) writeRaw(folder, `usage/date=${day}/${name}`, content)
  await publish(folder, AS_OF)
  return folder
}

function dailyOf(folder: string, day: string) {
  return queryCurrent(
    folder,
    `SELECT app_id, requests, prompt_tokens, completion_tokens FROM app_daily
     WHERE day = '${day}' ORDER BY app_id`,
  )
}

function linesWith(pattern: RegExp, content: string): string {
  const lines = content.split('\n').filter((line) => pattern.test(line))
  return lines.map((line) => `${line}\n`).join('')
}

/** The rows, times as an expression over the column `ts`. */
function rowsOf(day: string, { ts = 'ts', app = 'BIGINT', count = 'BIGINT' } = {}, rows = ROWS): string {
  const values = rows.map(([time, ...others]) => {
    const cells = others.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
    return `(TIMESTAMP '${day} ${time}', ${cells.join()})`
  })
  return `SELECT ${ts} AS ts, app_id::${app} AS app_id, prompt_tokens::${count} AS prompt_tokens,
      completion_tokens::${count} AS completion_tokens, requests::${count} AS requests, request_id
    FROM (VALUES ${values.join()}) AS rows(${COLUMNS.join()})`
}

async function csv(day: string): Promise<string> {
  const bytes = await written('csv', rowsOf(day, { ts: "strftime(ts, '%Y-%m-%dT%H:%M:%S.%fZ')" }))
  return bytes.toString()
}

async function ndjson(day: string): Promise<string> {
  const bytes = await written('json', rowsOf(day))
  return bytes.toString()
}

function parquet({ ts = 'TIMESTAMP', ...types }: { ts?: string; app?: string; count?: string } = {}) {
  return (day: string, rows = ROWS) => written('parquet', rowsOf(day, { ts: `ts::${ts}`, ...types }, rows))
}

async function written(format: 'csv' | 'json' | 'parquet', sql: string): Promise<Buffer> {
  const file = join(scratch, 'rows')
  await withDatabase((connection) => connection.run(`COPY (${sql}) TO '${file}' (FORMAT ${format})`))
  return readFileSync(file)
}

type ArrowForm = {
  /** The type of times with its units in a second. */
  readonly ts?: 'text' | readonly [type: Timestamp, units: bigint]
  readonly app?: DataType
  readonly count?: DataType
  readonly id?: DataType
  readonly format?: 'file' | 'stream'
  readonly batchRows?: number
}

function arrow({ format = 'file', batchRows = 1000, ts = MICROSECONDS, ...types }: ArrowForm = {}) {
  const { app = new Int64(), count = new Int64(), id = new Utf8() } = types
  const typeOf = {
    app_id: app,
    prompt_tokens: count,
    completion_tokens: count,
    requests: count,
    request_id: id,
  }
  return (day: string, rows = ROWS): Uint8Array => {
    const times = rows.map(([time]) => `${day}T${time}Z`)
    const vectors = COLUMNS.map((column, index): [string, Vector] => {
      if (column === 'ts')
        return [column, ts === 'text' ? vectorFromArray(times, new Utf8()) : timesVector(times, ts)]
      const cells = rows.map((row) => row[index])
      return [
        column,
        vectorFromArray(types.app && column === 'app_id' ? cells.map(Number) : cells, typeOf[column]),
      ]
    })
    const table = new Table(Object.fromEntries(vectors))
    const [first, ...further] = rows.flatMap((_row, index) =>
      index % batchRows === 0 ? [table.slice(index, index + batchRows)] : [],
    )
    return tableToIPC((first ?? table).concat(...further), format)
  }
}

/** Times to the microsecond as numbers of the type's unit. */
function timesVector(
  times: readonly string[],
  [type, units]: Exclude<ArrowForm['ts'], 'text' | undefined>,
): Vector {
  const data = BigInt64Array.from(times, (text) => {
    const microseconds = BigInt(Date.parse(text)) * 1000n + BigInt(text.slice(-4, -1))
    return (microseconds * units) / 1_000_000n
  })
  return new Vector([makeData({ type, length: data.length, nullCount: 0, data })])
}
