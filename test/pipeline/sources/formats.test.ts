/** CONTRACT 7: the same rows in every format and spelling give the same dataset. */
import {
  Dictionary,
  Int32,
  Int64,
  makeData,
  RecordBatchStreamWriter,
  Table,
  tableToIPC,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  Uint64,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow'
import type { Timestamp } from 'apache-arrow'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { withMemoryDatabase } from '../../../pipeline/duckdb/memory-database.ts'
import {
  publish,
  queryCurrent,
  runNightly,
  TemporaryFolders,
  writeRaw,
} from '../../support/pipeline/nightly.ts'

const AS_OF = '2025-03-01T02:00:00Z'

const REGISTRY = `app_id,app_name,visibility,subcategories,alias_of,updated_at
1,One,public,cli-agent|game,,2025-01-01T00:00:00Z
2,Two,public,,,2025-01-01T00:00:00Z
3,Three,public,,,2025-01-01T00:00:00Z
`

interface Row {
  /** Time of day, UTC. */
  readonly time: string
  readonly app_id: bigint
  readonly prompt_tokens: bigint | null
  readonly completion_tokens: bigint | null
  readonly requests: bigint | null
  readonly request_id: string | null
}

/** In each pair the larger row is the newer one too, so that formats with coarser times agree. */
const ROWS: readonly Row[] = [
  row('00:00:00.000000', 1n, 10n, 1n, null, null),
  row('00:00:00.000000', 1n, 10n, 1n, 7n, null),
  row('11:22:33.123456', 1n, 200n, 20n, 1n, 'a "quoted", id'),
  row('11:22:33.123457', 2n, 300n, 30n, 1n, 'a "quoted", id'),
  row('12:00:00.000000', 2n, null, null, 3n, ''),
  row('12:00:00.000000', 2n, null, null, null, ''),
  row('13:00:00.000000', 3n, 9007199254740991n, 0n, 0n, 'twice'),
  row('13:00:00.000000', 3n, 9007199254740991n, 0n, 0n, 'twice'),
  row('23:59:59.123456', 3n, 0n, 4000000000n, 1000000n, 'ümläut'),
]

/** The totals of the rows, added up by hand. */
const EXPECTED = [
  { app_id: '1', requests: '8', prompt_tokens: '20', completion_tokens: '2' },
  { app_id: '2', requests: '5', prompt_tokens: '300', completion_tokens: '30' },
  { app_id: '3', requests: '1000000', prompt_tokens: '9007199254740991', completion_tokens: '4000000000' },
]

type Content = string | Uint8Array

interface Variant {
  readonly name: string
  readonly file: string
  readonly content: (day: string) => Content | Promise<Content>
}

const folders = new TemporaryFolders()
const scratch = folders.make('scratch')
const dataDir = folders.make()

const VARIANTS: readonly Variant[] = [
  { name: 'CSV', file: 'rows.csv', content: toCsv },
  { name: 'CSV with \\r\\n', file: 'rows.csv', content: (day) => toCsv(day).replaceAll('\n', '\r\n') },
  { name: 'CSV after a byte order mark', file: 'rows.csv', content: (day) => `\uFEFF${toCsv(day)}` },
  { name: 'CSV without a last line break', file: 'rows.csv', content: (day) => toCsv(day).trimEnd() },
  {
    name: 'CSV with columns that have no name',
    file: 'rows.csv',
    content: (day) => toCsv(day).replaceAll(/$/gm, ',,').replace(/\n,,$/, '\n'),
  },
  { name: 'CSV, gz', file: 'rows.csv.gz', content: (day) => gzipSync(toCsv(day)) },
  { name: 'CSV, zst', file: 'rows.csv.zst', content: (day) => zstdCompressSync(toCsv(day)) },
  { name: 'NDJSON', file: 'rows.ndjson', content: toNdjson },
  { name: 'NDJSON, gz', file: 'rows.ndjson.gz', content: (day) => gzipSync(toNdjson(day)) },
  { name: 'NDJSON, zst', file: 'rows.ndjson.zst', content: (day) => zstdCompressSync(toNdjson(day)) },
  { name: 'NDJSON with numbers as text', file: 'rows.ndjson', content: toTextNdjson },
  { name: 'Parquet', file: 'rows.parquet', content: parquet({}) },
  { name: 'Parquet with TIMESTAMPTZ', file: 'rows.parquet', content: parquet({ ts: 'TIMESTAMPTZ' }) },
  { name: 'Parquet with seconds', file: 'rows.parquet', content: parquet({ ts: 'TIMESTAMP_S' }) },
  { name: 'Parquet with milliseconds', file: 'rows.parquet', content: parquet({ ts: 'TIMESTAMP_MS' }) },
  { name: 'Parquet with nanoseconds', file: 'rows.parquet', content: parquet({ ts: 'TIMESTAMP_NS' }) },
  { name: 'Parquet with DOUBLE', file: 'rows.parquet', content: parquet({ count: 'DOUBLE', app: 'DOUBLE' }) },
  {
    name: 'Parquet with UBIGINT',
    file: 'rows.parquet',
    content: parquet({ count: 'UBIGINT', app: 'UINTEGER' }),
  },
  { name: 'Parquet with DECIMAL', file: 'rows.parquet', content: parquet({ count: 'DECIMAL(20, 2)' }) },
  { name: 'Parquet with wide DECIMAL', file: 'rows.parquet', content: parquet({ count: 'DECIMAL(38, 0)' }) },
  {
    name: 'Parquet with text',
    file: 'rows.parquet',
    content: parquet({ ts: 'VARCHAR', count: 'VARCHAR', app: 'VARCHAR' }),
  },
  { name: 'Parquet with small integers', file: 'rows.parquet', content: parquet({ app: 'TINYINT' }) },
  { name: 'Arrow file', file: 'rows.arrow', content: (day) => tableToIPC(arrow(day, {}), 'file') },
  { name: 'Arrow stream', file: 'rows.arrow', content: (day) => tableToIPC(arrow(day, {}), 'stream') },
  { name: 'Arrow stream of many batches', file: 'rows.arrow', content: arrowInBatches },
  { name: 'Arrow with seconds', file: 'rows.arrow', content: arrowFile({ ts: 'second' }) },
  { name: 'Arrow with milliseconds', file: 'rows.arrow', content: arrowFile({ ts: 'millisecond' }) },
  { name: 'Arrow with nanoseconds', file: 'rows.arrow', content: arrowFile({ ts: 'nanosecond' }) },
  { name: 'Arrow with time as text', file: 'rows.arrow', content: arrowFile({ ts: 'text' }) },
  { name: 'Arrow with Uint64', file: 'rows.arrow', content: arrowFile({ count: new Uint64() }) },
  { name: 'Arrow with Int32 and a dictionary', file: 'rows.arrow', content: arrowFile({ small: true }) },
]

const dayOf = new Map(VARIANTS.map(({ name }, index) => [name, dayAfter('2025-01-01', index)]))

beforeAll(async () => {
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  for (const { name, file, content } of VARIANTS) {
    const day = dayOf.get(name) ?? ''
    writeRaw(dataDir, `usage/date=${day}/${file}`, await content(day))
  }
  await publish(dataDir, AS_OF)
})

afterAll(() => folders.removeAll())

it.each(VARIANTS)('$name gives the same day', async ({ name }) => {
  expect(await dailyOf(dataDir, dayOf.get(name) ?? '')).toEqual(EXPECTED)
})

it('a day may contain every format, and duplicates are found across formats', async () => {
  const mixed = folders.make()
  const day = '2025-01-01'
  writeRaw(mixed, 'apps/registry.csv', REGISTRY)
  writeRaw(mixed, `usage/date=${day}/a.csv.gz`, gzipSync(linesWith(/^ts,|twice/, toCsv(day))))
  writeRaw(mixed, `usage/date=${day}/b.ndjson.zst`, zstdCompressSync(linesWith(/twice/, toNdjson(day))))
  writeRaw(mixed, `usage/date=${day}/c.parquet`, await parquet({})(day))
  writeRaw(mixed, `usage/date=${day}/d.arrow`, tableToIPC(arrow(day, {}).slice(6, 8), 'file'))
  // An id on most rows of a day would be none.
  const others = `${day}T00:00:00Z,9,1,1\n`.repeat(20)
  writeRaw(mixed, `usage/date=${day}/e.csv`, `ts,app_id,prompt_tokens,completion_tokens\n${others}`)
  await publish(mixed, AS_OF)
  expect(await dailyOf(mixed, day)).toEqual(EXPECTED)
})

it('unsigned and decimal values past 2^62 keep every digit', async () => {
  const wide = folders.make()
  const day = '2025-01-01'
  const largest = '4611686018427387903'
  writeRaw(wide, 'apps/registry.csv', REGISTRY)
  const columns = `TIMESTAMP '${day} 01:00:00' AS ts, 1 AS app_id, 0 AS completion_tokens`
  for (const type of ['UBIGINT', 'DECIMAL(30, 0)']) {
    const content = await toParquet(`SELECT ${columns}, ${largest}::${type} AS prompt_tokens`)
    writeRaw(wide, `usage/date=${day}/${type.slice(0, 7)}.parquet`, content)
  }
  await publish(wide, AS_OF)
  expect(await dailyOf(wide, day)).toEqual([
    { app_id: '1', requests: '2', prompt_tokens: String(2n * BigInt(largest)), completion_tokens: '0' },
  ])
})

it('a row of Parquet counts its number of requests, or one in a file without that column', async () => {
  const some = folders.make()
  writeRaw(some, 'apps/registry.csv', REGISTRY)
  const rows = (day: string) =>
    `SELECT TIMESTAMP '${day} 01:00:00' AS ts, 1 AS app_id, 2 AS prompt_tokens, 3 AS completion_tokens`
  for (const [day, files] of [
    ['2025-01-01', ['singles']],
    ['2025-01-02', ['summed']],
    ['2025-01-03', ['singles', 'summed']],
  ] as const) {
    for (const file of files) {
      const sql = file === 'summed' ? `${rows(day)}, 70 AS requests` : `${rows(day)} FROM range(4)`
      writeRaw(some, `usage/date=${day}/${file}.parquet`, await toParquet(sql))
    }
  }
  await publish(some, AS_OF)
  expect(await dailyOf(some, '2025-01-01')).toMatchObject([{ requests: '4', prompt_tokens: '8' }])
  expect(await dailyOf(some, '2025-01-02')).toMatchObject([{ requests: '70', prompt_tokens: '2' }])
  expect(await dailyOf(some, '2025-01-03')).toMatchObject([{ requests: '74', prompt_tokens: '10' }])
})

it.each(["it's one br[ack]et * star?", 'a "double" #%20 ü\\n {curly},$dollar;', 'app_id=7', 'line=7'])(
  'a DATA_DIR and files with the name %s are read',
  async (name) => {
    // DuckDB cannot open a database below a folder with a question mark; a raw file may have one.
    const odd = folders.make(name.replaceAll('?', ''))
    const day = '2025-01-01'
    writeRaw(odd, `apps/${name}.csv`, REGISTRY)
    writeRaw(odd, `usage/date=${day}/${name}.csv`, toCsv(day))
    writeRaw(odd, `usage/date=${day}/${name}.ndjson.gz`, gzipSync(`${toNdjson(day).split('\n')[0]}\n`))
    writeRaw(odd, `usage/date=${day}/${name}.arrow`, tableToIPC(arrow(day, {}).slice(0, 1), 'stream'))
    writeRaw(odd, `usage/date=${day}/${name}.parquet`, await parquet({})(day, 1))
    await publish(odd, AS_OF)
    const [first] = await dailyOf(odd, day)
    // The first row of ROWS is repeated three times.
    expect(first).toEqual({ app_id: '1', requests: '11', prompt_tokens: '50', completion_tokens: '5' })
  },
)

it.each(['csv', 'parquet'])(
  'a .%s file with a backslash and a wildcard in its path fails the run with a message',
  async (ending) => {
    const odd = folders.make()
    const name = `usage/date=2025-01-01/half\\way [1].${ending}`
    writeRaw(odd, 'apps/registry.csv', REGISTRY)
    writeRaw(odd, name, ending === 'parquet' ? await parquet({})('2025-01-01') : toCsv('2025-01-01'))
    const run = await runNightly(odd, '--as-of', AS_OF)
    expect(run.stderr).toContain(
      `${name} cannot be read: it has a backslash beside one of * ? [, and DuckDB finds no such file. Rename`,
    )
    expect(run.code).toBe(1)
  },
)

// eslint-disable-next-line max-params -- the columns of a table, in their order
function row(
  time: string,
  app_id: bigint,
  prompt_tokens: bigint | null,
  completion_tokens: bigint | null,
  requests: bigint | null,
  request_id: string | null,
): Row {
  return { time, app_id, prompt_tokens, completion_tokens, requests, request_id }
}

function dayAfter(day: string, days: number): string {
  return new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10)
}

function dailyOf(folder: string, day: string) {
  return queryCurrent(
    folder,
    `SELECT app_id, requests, prompt_tokens, completion_tokens FROM app_daily
     WHERE day = '${day}' ORDER BY app_id`,
  )
}

function linesWith(pattern: RegExp, content: string): string {
  return content
    .split('\n')
    .filter((line) => pattern.test(line))
    .map((line) => `${line}\n`)
    .join('')
}

function toCsv(day: string): string {
  const lines = ROWS.map(({ time, request_id, ...counts }) =>
    [`${day}T${time}Z`, ...Object.values(counts).map((count) => count ?? ''), quoted(request_id)].join(),
  )
  return `ts,app_id,prompt_tokens,completion_tokens,requests,request_id\n${lines.join('\n')}\n`
}

function quoted(text: string | null): string {
  return text === null ? '' : `"${text.replaceAll('"', '""')}"`
}

function toNdjson(day: string): string {
  return ROWS.map(({ time, request_id, ...counts }) => {
    const numbers = Object.entries(counts).map(([column, count]) => `"${column}":${count}`)
    return `{"ts":"${day} ${time}",${numbers.join()},"request_id":${JSON.stringify(request_id)}}\n`
  }).join('')
}

/** Every count as JSON text, with a zero fraction. */
function toTextNdjson(day: string): string {
  return toNdjson(day).replaceAll(/":(\d+)/g, '":"$1.0"')
}

interface ParquetTypes {
  readonly ts?: string
  readonly app?: string
  readonly count?: string
}

function parquet({ ts = 'TIMESTAMP', app = 'BIGINT', count = 'BIGINT' }: ParquetTypes) {
  return (day: string, rows = ROWS.length): Promise<Uint8Array> => {
    const values = ROWS.slice(0, rows).map(
      ({ time, request_id, ...counts }) =>
        `('${day} ${time}', ${Object.values(counts).map(String).join()}, ${request_id === null ? 'NULL' : `'${request_id}'`})`,
    )
    return toParquet(
      `SELECT ts::TIMESTAMP::${ts} AS ts, app_id::${app} AS app_id, prompt_tokens::${count} AS prompt_tokens,
         completion_tokens::${count} AS completion_tokens, requests::${count} AS requests, request_id
       FROM (VALUES ${values.join()})
         AS rows(ts, app_id, prompt_tokens, completion_tokens, requests, request_id)`,
    )
  }
}

async function toParquet(sql: string): Promise<Uint8Array> {
  const file = join(scratch, 'rows.parquet')
  await withMemoryDatabase({ memory: '1GB', dataDir: scratch }, (connection) =>
    connection.run(`COPY (${sql}) TO '${file}' (FORMAT parquet)`),
  )
  return readFileSync(file)
}

interface ArrowTypes {
  readonly ts?: 'second' | 'millisecond' | 'microsecond' | 'nanosecond' | 'text'
  readonly count?: Int64 | Uint64
  /** 32-bit app ids, and request ids from a dictionary. */
  readonly small?: boolean
}

function arrowFile(types: ArrowTypes) {
  return (day: string): Uint8Array => tableToIPC(arrow(day, types), 'file')
}

function arrow(day: string, { ts = 'microsecond', count = new Int64(), small = false }: ArrowTypes): Table {
  const ids = ROWS.map(({ request_id }) => request_id)
  return new Table({
    ts: ts === 'text' ? vectorFromArray(times(day), new Utf8()) : timestamps(day, ts),
    app_id: small
      ? vectorFromArray(
          ROWS.map(({ app_id }) => Number(app_id)),
          new Int32(),
        )
      : vectorFromArray(
          ROWS.map(({ app_id }) => app_id),
          new Int64(),
        ),
    prompt_tokens: vectorFromArray(
      ROWS.map(({ prompt_tokens }) => prompt_tokens),
      count,
    ),
    completion_tokens: vectorFromArray(
      ROWS.map(({ completion_tokens }) => completion_tokens),
      count,
    ),
    requests: vectorFromArray(
      ROWS.map(({ requests }) => requests),
      count,
    ),
    request_id: vectorFromArray(ids, small ? new Dictionary(new Utf8(), new Int32()) : new Utf8()),
  })
}

/** A stream with one row per record batch. */
function arrowInBatches(day: string): Uint8Array {
  const table = arrow(day, {})
  const writer = new RecordBatchStreamWriter()
  for (let index = 0; index < table.numRows; index++) {
    for (const batch of table.slice(index, index + 1).batches) writer.write(batch)
  }
  return writer.finish().toUint8Array(true)
}

const UNITS = {
  second: { type: new TimestampSecond(), perSecond: 1n },
  millisecond: { type: new TimestampMillisecond(), perSecond: 1_000n },
  microsecond: { type: new TimestampMicrosecond(), perSecond: 1_000_000n },
  nanosecond: { type: new TimestampNanosecond(), perSecond: 1_000_000_000n },
} as const

/** From 64-bit values: the library's own conversion uses floating milliseconds. */
function timestamps(day: string, unit: keyof typeof UNITS): Vector<Timestamp> {
  const { type, perSecond } = UNITS[unit]
  const values = times(day).map((time) => {
    const [whole = '', fraction = ''] = time.replace('Z', '').split('.')
    const microseconds = BigInt(Date.parse(`${whole}Z`)) * 1_000n + BigInt(fraction)
    return (microseconds * perSecond) / 1_000_000n
  })
  return new Vector([
    makeData({ type, length: values.length, nullCount: 0, data: BigInt64Array.from(values) }),
  ])
}

function times(day: string): string[] {
  return ROWS.map(({ time }) => `${day}T${time}Z`)
}
