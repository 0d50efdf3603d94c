/**
 * CONTRACT 7 and 9: raw usage in every format alike, in the drop folder and by `import`: rows that are read, rows that are not
 * valid, and files that cannot be read.
 */
import {
  CompressionType,
  Dictionary,
  Float32,
  Float64,
  Int32,
  Int64,
  Table,
  TimestampMicrosecond,
  Utf8,
  Vector,
  compressionRegistry,
  makeData,
  tableToIPC,
  vectorFromArray,
} from 'apache-arrow'
import { compressFrameSync, decompressFrameSync } from 'lz4-napi'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../../support/folders.ts'
import { queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { runCommand, writeRaw, withApps } from '../../support/pipeline/nightly.ts'
import { FORMATS, parquetOf, plainColumns, rawFile } from '../../support/pipeline/raw-files.ts'
import type { ParquetColumn, RawColumn, RawFormat } from '../../support/pipeline/raw-files.ts'

const AS_OF = '2026-12-31T02:00:00Z'

type Content = string | Uint8Array
type Columns = Readonly<Record<string, RawColumn[1]>>

/** A file on its own day, which a text calls DAY. Its name begins with its ending. */
type Case = readonly [name: string, content: string | ((day: string) => Content)]

function dayOf(index: number): string {
  return new Date(Date.UTC(2026, 0, 1 + index)).toISOString().slice(0, 10)
}

function pathOf(name: string, day: string): string {
  return `usage/date=${day}/rows.${name.split(':', 1)[0]}`
}

/** A DATA_DIR with a day per case, so that one run suffices. */
function folderOf(cases: readonly Case[]): string {
  const dataDir = withApps('One')
  for (const [index, [name, content]] of cases.entries()) {
    const day = dayOf(index)
    const bytes = typeof content === 'string' ? content.replaceAll('DAY', day) : content(day)
    writeRaw(dataDir, pathOf(name, day), bytes)
  }
  return dataDir
}

/** Columns of two valid rows: 12 tokens. */
function good(day: string): Columns {
  return {
    ts: [`${day}T10:00:00Z`, `${day}T11:00:00Z`],
    app_id: [1n, 1n],
    prompt_tokens: [5n, 5n],
    completion_tokens: [1n, 1n],
  }
}

/** The valid rows, with some columns replaced or added; a column without cells is left out. */
function fileOf(format: RawFormat, columns: Columns = {}) {
  return (day: string): Uint8Array => {
    const all: readonly RawColumn[] = Object.entries({ ...good(day), ...columns })
    const written = all.filter(([, cells]) => cells.length > 0)
    return rawFile(format, written)
  }
}

function inFormats(name: string, columns: Columns, formats: readonly RawFormat[] = FORMATS): Case[] {
  return formats.map((format) => [`${format}: ${name}`, fileOf(format, columns)])
}

function withTimes(name: string, timeOf: (day: string) => string): Case[] {
  return FORMATS.map((format) => [
    `${format}: ${name}`,
    (day) => fileOf(format, { ts: [timeOf(day), timeOf(day)] })(day),
  ])
}

function arrow(change: (day: string) => Record<string, Vector> = () => ({}), codec?: CompressionType) {
  return (day: string): Uint8Array => {
    const vectors = Object.entries(good(day)).map(([name, cells]) => {
      return [name, vectorFromArray(cells, typeof cells[0] === 'bigint' ? new Int64() : new Utf8())] as const
    })
    return tableToIPC(new Table({ ...Object.fromEntries(vectors), ...change(day) }), 'file', codec)
  }
}

const CODECS = [
  ['LZ4', CompressionType.LZ4_FRAME, compressFrameSync, decompressFrameSync],
  ['ZSTD', CompressionType.ZSTD, zstdCompressSync, zstdDecompressSync],
] as const

function compressedArrow([, codec, encode, decode]: (typeof CODECS)[number]) {
  return (day: string): Uint8Array => {
    compressionRegistry.set(codec, {
      encode: (bytes) => encode(Buffer.from(bytes)),
      decode: (bytes) => decode(Buffer.from(bytes)),
    })
    return arrow(undefined, codec)(day)
  }
}

const HEADER = 'ts,app_id,prompt_tokens,completion_tokens'
const CSV_ROW = 'DAYT10:00:00Z,1,5,1\n'
const JSON_ROW = '{"ts":"DAYT10:00:00Z","app_id":1,"prompt_tokens":5,"completion_tokens":1}\n'

function csvRows(header: string, ...further: readonly string[]): string {
  return [HEADER + header, ...further.map((each) => CSV_ROW.trim() + each), ''].join('\n')
}

/** Rows enough for one more to be less than 1 % of a day, for `csvRows`. */
const MANY = Array.from({ length: 300 }, () => ',c')

function jsonRows(...further: readonly string[]): string {
  return further.map((each) => JSON_ROW.replace('}', `${each}}`)).join('')
}

function latin1(text: string) {
  return (day: string) => Buffer.from(text.replaceAll('DAY', day), 'latin1')
}

function gz(...members: readonly string[]) {
  return (day: string) => Buffer.concat(members.map((text) => gzipSync(latin1(text)(day))))
}

function zst(...frames: readonly string[]) {
  return (day: string) => Buffer.concat(frames.map((text) => zstdCompressSync(latin1(text)(day))))
}

/** A CSV file of many rows, with a line between them. */
function manyRows(line = ''): string {
  return `${HEADER}\n${CSV_ROW.repeat(3000)}${line}${CSV_ROW.repeat(30)}`
}

/** The content without its last bytes. */
function cut(bytes: number, content: (day: string) => Uint8Array) {
  return (day: string) => content(day).subarray(0, -bytes)
}

/** The valid rows in Parquet, with some columns replaced or added. */
function parquet(...columns: readonly ParquetColumn[]) {
  const names = columns.map(([name]) => name)
  return (day: string): Uint8Array => {
    const others = plainColumns(good(day)).filter(([name]) => !names.includes(name))
    return parquetOf([...others, ...columns])
  }
}

const BYTES = { type: 'BYTE_ARRAY' } as const
/** A column without any value, as pandas writes it. */
const EMPTY = { type: 'INT32', repetition_type: 'OPTIONAL', logical_type: { type: 'NULL' } } as const
/** As ClickHouse writes it. */
const INT128 = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16 } as const
const WIDE = {
  type: 'FIXED_LEN_BYTE_ARRAY',
  type_length: 21,
  converted_type: 'DECIMAL',
  precision: 50,
  scale: 0,
} as const

describe('two rows of 12 tokens are read', () => {
  const cases: readonly Case[] = [
    ...FORMATS.map((format): Case => [
      `${format}: columns named in capitals, with spaces around them`,
      (day) =>
        rawFile(
          format,
          Object.entries(good(day)).map(([name, cells]) => [` ${name.toUpperCase()} `, cells]),
        ),
    ]),
    ...inFormats('a descriptive column given twice', { model: ['a', 'b'], Model: ['', ''] }),
    ...inFormats('a further column named as one of a pulled cluster', { row_count: [0n, 5n] }),
    ...inFormats('counts as floating-point numbers', { prompt_tokens: [5, 5] }),
    ...inFormats('zeros behind the point of texts', { prompt_tokens: ['5.0', '5.000000'] }),
    ...inFormats('an exponent in texts', { prompt_tokens: ['5e+00', '0.5E1'] }),
    ...inFormats(
      'words that mean null as numbers',
      { requests: ['NULL', 'NA'], cached_tokens: ['\\N', 'null'] },
      ['csv', 'ndjson'],
    ),
    ...inFormats('zeros with a sign', { requests: [-0, -0], completion_tokens: ['1', '1'] }),
    ...[
      'T10:00Z',
      't10:00:00z',
      ' 10:00',
      'T10Z',
      'T12:00+02:00',
      ' 10:00:00 UTC',
      ' 12:00:00 +0200',
      ' 10:00:00.5 +00:00:00',
      ' 10:00:00.123456789 +0000 UTC m=+0.012345',
      'T10:00Z[UTC]',
      'T12:00:00+02:00[Europe/Berlin]',
      'T10:00:00,123Z',
      'T10:00:00.123456789Z',
    ].flatMap((time) => withTimes(`the time ${time}`, (day) => `${day}${time}`)),
    ...['T100000Z', 'T1000Z', 'T100000.5+0000'].flatMap((time) =>
      withTimes(`the basic form ${time}`, (day) => `${day.replaceAll('-', '')}${time}`),
    ),
    ...inFormats('control characters in columns that need not be there', {
      model: ['acme/\u0000large', '\u0000'],
      provider: ['\u0001', 'a\u0000'],
      request_id: ['a\u0000', '\u0000'],
      note: ['\u0000', '\u001F'],
    }),
    ...inFormats('unreadable names of apps that have an id', { app: ['\u0001', '\uFFFD'] }),
    ['csv: stray bytes in a further column', latin1(csvRows(',model', ',caf\xE9', ',\xFF'))],
    ['csv.gz: stray bytes in a further column', gz(csvRows(',note', ',"a\xE9\n"', ',\xFF'))],
    [
      'ndjson: stray bytes and halves of surrogate pairs in further keys',
      latin1(jsonRows(',"model":"\\ud800 \\\\ud800 \\ud83d\\ude00"', ',"m":"\xFF","n":"\\uDC00"')),
    ],
    [
      'ndjson: control characters that are not escaped in texts',
      jsonRows(',"model":"a\u0000","note":"\\"\t\u0000\u001F"', ',"a\u0000b":"\u0001"'),
    ],
    [
      'parquet: columns that have the type of no value',
      parquet(
        ...plainColumns({ app: ['One', 'ONE'] }),
        ...['app_id', 'requests', 'request_id', 'model', 'cached_tokens'].map(
          (name) => [name, EMPTY, [null, null]] as const,
        ),
      ),
    ],
    [
      'parquet: models that are not UTF-8',
      parquet(['model', BYTES, [Buffer.of(0x41, 0xff), Buffer.of(0xe9)]]),
    ],
    [
      'parquet: a descriptive column in an encoding that cannot be read',
      parquet(['cached_tokens', { type: 'INT64' }, [1n, 2n], { encoding: 'BYTE_STREAM_SPLIT' }]),
    ],
    [
      'parquet: text as bytes without a type',
      (day) => {
        const columns = { ...good(day), app_id: [null, null], app: ['One', 'ONE'] }
        const bytes = { ...BYTES, repetition_type: 'OPTIONAL' } as const
        const textOf = (cell: RawColumn[1][number]) => (cell === null ? null : Buffer.from(String(cell)))
        return parquetOf(Object.entries(columns).map(([name, cells]) => [name, bytes, cells.map(textOf)]))
      },
    ],
    [
      'ndjson: NaN, infinity and a comma behind the last value',
      jsonRows(',"cost":NaN,"note":[-Infinity,"\\"NaN,}",],').repeat(2),
    ],
    ['ndjson: blank lines of spaces and tabs', `\t\n${JSON_ROW} \t\r\n\t${JSON_ROW}\t`],
    ['ndjson: objects and lists in further keys', jsonRows(',"model":{"a":1},"x":[1]', ',"model":[]')],
    ['ndjson: an object as a part of the tokens', jsonRows('', ',"cached_tokens":{"a":-1}')],
    [
      'arrow: dictionary-encoded times',
      arrow((day) => {
        const type = new Dictionary(new TimestampMicrosecond('UTC'), new Int32())
        return { ts: vectorFromArray([Date.parse(day), Date.parse(day)], type) }
      }),
    ],
    [
      'arrow: an index beyond its dictionary, which is no value',
      arrow(() => {
        const [type, data] = [new Dictionary(new Float64(), new Int32()), Int32Array.of(0, 7)]
        const dictionary = vectorFromArray([1], new Float64())
        return { requests: new Vector([makeData({ type, length: 2, nullCount: 0, data, dictionary })]) }
      }),
    ],
    ...CODECS.map((codec): Case => [`arrow: buffers compressed by ${codec[0]}`, compressedArrow(codec)]),
    [
      'csv: a line break and quotes in the name of a further column',
      `"a ""note""\nof two, lines",${HEADER}\nx,${CSV_ROW}"y\n",${CSV_ROW}`,
    ],
    ['csv: a comma too many at the end of rows', csvRows('', ',', ',')],
    [
      'ndjson.gz: zeros behind the end',
      (day) => Buffer.concat([gz(JSON_ROW.repeat(2))(day), Buffer.alloc(512)]),
    ],
    ['csv.gz: two members', gz(csvRows('', ''), CSV_ROW)],
    ['ndjson.zst: two frames', zst(JSON_ROW, JSON_ROW)],
    [
      'csv: a quoted header after a byte order mark',
      `\uFEFF"${HEADER.replaceAll(',', '","')}","note, if ""any"""\n${`${CSV_ROW.trim()},"\nDAY,9,9,9,z"\n`.repeat(2)}`,
    ],
    [
      'csv: spaces around quotes, in a file that is read by lines',
      '"ts" ,"app", "prompt_tokens" ,completion_tokens \nDAY, "a, b"\t,"5" ,1\n \t\n"DAY" ,"a, b",5,"1" \n',
    ],
    ['csv: a row of empty cells, as spreadsheets leave it', `${csvRows(',note', ',', ',')},,,,\n`],
    [
      'csv: JSON in texts, its quotes doubled',
      csvRows(',note', ',"{""a"": ""say \\""hi\\"", ok\\""""}"', ', "a \\""" '),
    ],
    ...Object.entries({
      'quotes behind backslashes, as Spark and MySQL write them': csvRows(
        ',note',
        ',"{\\"a\\": \\"b\\",\\"c\\": \\"\nd\\"}"',
        ',"e, \\\\ \\""',
      ),
      // Lines that look like rows, behind a misplaced quote.
      '1 MB of misleading lines in quotes': csvRows(
        ',note',
        ',5" or so',
        `,"${`\n${CSV_ROW}`.repeat(40_000)}"`,
      ),
    }).flatMap(([name, rows]): Case[] => [
      [`csv: ${name}`, rows],
      [`csv.gz: ${name}`, gz(rows)],
    ]),
  ]
  const figures = 'SELECT day, rows_read, rows_rejected, tokens_read FROM days'
  let days: Awaited<ReturnType<typeof queryWarehouse>> = []
  let imported: typeof days = []
  const dataDir = folderOf(cases)

  beforeAll(async () => {
    await runAt(dataDir, AS_OF)
    days = await queryWarehouse(dataDir, figures)
  })
  beforeAll(async () => {
    const other = withApps('One')
    const ended = await runCommand(other, 'import', join(dataDir, 'raw/usage'), '--source', 'all')
    expect(ended.stderr).toBe('')
    await runAt(other, AS_OF)
    imported = await queryWarehouse(other, figures)
  })

  it.each(cases.map(([name], index) => [name, dayOf(index)]))('%s', (_, day) => {
    const expected = { day, rows_read: '2', rows_rejected: '0', tokens_read: '12' }
    expect(days.find((row) => row['day'] === day)).toEqual(expected)
    expect(
      imported.find((row) => row['day'] === day),
      'imported',
    ).toEqual(expected)
  })
})

describe('the run fails for', () => {
  type Fault = readonly [...Case, RegExp]
  const failing = (words: RegExp, ...of: Parameters<typeof inFormats>) =>
    inFormats(...of).map((one): Fault => [...one, words])
  const notInteger = /2 rows: prompt_tokens is not an integer, 0 or more/
  const withColumns = ['csv', 'parquet', 'arrow'] as const
  const cases: readonly Fault[] = [
    ...failing(
      /names the column "prompt_tokens" twice: as "prompt_tokens" and as "Prompt_Tokens"/,
      'a column given twice, by its capitals',
      { Prompt_Tokens: [0n, 0n] },
      withColumns,
    ),
    ...failing(
      /names the column "request_id" twice: as "request_id" and as " request_id"/,
      'a column given twice, by the spaces around it',
      { request_id: ['a', 'b'], ' request_id': ['', ''] },
      withColumns,
    ),
    ...withColumns.map((format): Fault => [
      `${format}: a column given twice, in all its letters`,
      (day) => rawFile(format, [...Object.entries(good(day)), ['prompt_tokens', [0n, 0n]]]),
      /names the column "prompt_tokens" twice: as "prompt_tokens" and as "prompt_tokens"/,
    ]),
    [
      'ndjson: a key given twice, by its capitals',
      jsonRows(',"Prompt_Tokens":0', ',"Prompt_Tokens":0'),
      /2 rows: the key prompt_tokens stands twice: prompt_tokens and Prompt_Tokens/,
    ],
    ...failing(notInteger, 'numbers that may be thousands', { prompt_tokens: ['12.000', '1.000'] }),
    ...failing(notInteger, 'NaN and infinity', { prompt_tokens: [NaN, Infinity] }, withColumns),
    ...failing(notInteger, 'floating-point counts from 2^53 on', { prompt_tokens: [2 ** 53, 2 ** 60] }),
    ...failing(/2 rows: app_id is not an integer, 0 or more/, 'floating-point ids from 2^53 on', {
      app_id: [2 ** 53, 2 ** 60],
    }),
    ...failing(
      /1 row: requests is not an integer from 0 to 10\^12/,
      'requests that are NaN, which the footer leaves out',
      { requests: [1, NaN] },
      ['parquet'],
    ),
    ...failing(/1 row: app_id is not an integer/, 'ids that are NaN', { app_id: [1, NaN] }, ['parquet']),
    ...failing(
      /2 rows: requests is not an integer from 0 to 10\^12/,
      'requests that are together more than 2^63',
      { requests: [2n ** 63n - 1n, 2n ** 63n - 1n] },
    ),
    [
      'parquet: request_ids that are not UTF-8',
      parquet(['request_id', BYTES, [Buffer.of(0xff), Buffer.of(0xfe)]]),
      /2 rows: request_id is not readable text in UTF-8/,
    ],
    ...failing(/2 rows: app is not readable text in UTF-8/, 'apps with control characters', {
      app_id: [],
      app: ['It\u0092s', '\u007F'],
    }),
    ...failing(
      /2 rows: request_id is not readable text in UTF-8/,
      'request_ids with characters that were not UTF-8',
      { request_id: ['a\uFFFD', '\uFFFD'] },
      ['csv', 'ndjson', 'arrow'],
    ),
    [
      'csv: apps that are not UTF-8',
      latin1(`${HEADER.replace('app_id', 'app')}\n${'DAY,Caf\xE9 Chat,5,1\n'.repeat(2)}`),
      /2 rows: app is not readable text in UTF-8/,
    ],
    [
      'ndjson: apps that are not UTF-8',
      latin1(JSON_ROW.replace('"app_id":1', '"app":"Caf\xE9 Chat"').repeat(2)),
      /2 rows: app is not readable text in UTF-8/,
    ],
    [
      'arrow: 32-bit floating-point counts from 2^24 on',
      arrow(() => ({ prompt_tokens: vectorFromArray([5, 3e10], new Float32()) })),
      /1 of 2 rows.* prompt_tokens is not an integer/s,
    ],
    [
      'parquet: 32-bit floating-point counts from 2^24 on',
      parquet(['prompt_tokens', { type: 'FLOAT' }, [5, 3e10]]),
      /1 of 2 rows.* prompt_tokens is not an integer/s,
    ],
    [
      'ndjson: one row among others with NaN',
      jsonRows(',"cost":NaN', ',"requests":NaN'),
      /1 of 2 rows.* requests is not an integer/s,
    ],
    [
      'ndjson: lines without the key completion_tokens',
      `${JSON_ROW}{"ts":"DAY","app_id":1,"prompt_tokens":null}\n`,
      /1 of 2 rows.* the key completion_tokens is missing/s,
    ],
    [
      'ndjson: tokens below another key',
      '{"ts":"DAY","app_id":1,"usage":{"prompt_tokens":5,"completion_tokens":1}}\n'.repeat(2),
      /2 rows: the key prompt_tokens is missing/,
    ],
    [
      'ndjson: a line with a null app_id, in a file without apps',
      JSON_ROW + JSON_ROW.replace('"app_id":1', '"app_id":null'),
      /1 of 2 rows.* app_id is not an integer/s,
    ],
    ...['true', '"12.000"', '1.5'].map((value): Fault => [
      `ndjson: ${value} as tokens behind 1 MB of integers`,
      JSON_ROW.repeat(20_000) + JSON_ROW.replace(':5', `:${value}`).repeat(300),
      /300 of 20300 rows.* prompt_tokens is not an integer/s,
    ]),
    [
      'ndjson: a fraction behind integers',
      JSON_ROW + JSON_ROW.replace(':5', ':5.5'),
      /1 of 2 rows.* prompt_tokens is not an integer/s,
    ],
    [
      'csv: rows behind a quote that is not doubled',
      csvRows(',note', ',"a \\""', ...MANY.slice(250), ',"b, c"', ...MANY),
      /52 of 352 rows.* broken line: 6 fields instead of 5; put texts with commas or quotes into quotes/s,
    ],
    [
      'csv: a row behind such a quote, where all texts are in quotes',
      csvRows(',note', ',"a \\""', ',"b"', ...MANY.slice(200)),
      /2 of 102 rows.* broken line: stray quotes; put texts/s,
    ],
    [
      'ndjson: an object as request_id',
      jsonRows(',"request_id":{"id":1}', ',"request_id":{"id":1}'),
      /2 rows: request_id is an object or a list, not one value/,
    ],
  ]

  /** Files that `import` rejects with the same words. */
  const broken: readonly Fault[] = (
    [
      ['csv', '', /rows\.csv is empty: expected a first line with the column names/],
      [
        'csv',
        'ts,app_id,prompt_tokens\n',
        /rows\.csv has no column completion_tokens\. Its columns are: ts, app_id/,
      ],
      ['csv', `${HEADER},ts\n`, /rows\.csv names the column "ts" twice/],
      [
        'csv',
        manyRows('"2026-01-05T00:00:00Z,1,1,1\n'),
        /rows\.csv cannot be read: line \d+ has a quote that is not closed/,
      ],
      [
        'csv',
        `${HEADER},"note\n${CSV_ROW}`,
        /rows\.csv cannot be read: line \d+ has a quote that is not closed/,
      ],
      ['csv.gz', cut(10, gz(manyRows())), /cannot be read: unexpected end of file/],
      ['csv.gz', cut(1, gz(manyRows())), /cannot be read: unexpected end of file\. Check that it is whole/],
      ['csv.zst', cut(10, zst(manyRows())), /rows\.csv\.zst cannot be read/],
      ['csv.zst', cut(1, zst(manyRows())), /rows\.csv\.zst cannot be read/],
      ['parquet', 'PAR1', /rows\.parquet cannot be read as Parquet/],
      ['parquet', cut(10, parquet()), /rows\.parquet cannot be read as Parquet/],
      [
        'parquet',
        parquet(['prompt_tokens', WIDE, [3n, 3n]]),
        /prompt_tokens is of type DECIMAL of 50 digits, which cannot hold it: write it as BIGINT/,
      ],
      [
        'parquet',
        parquet(['prompt_tokens', { type: 'INT64' }, [5n, 5n], { encoding: 'BYTE_STREAM_SPLIT' }]),
        /rows\.parquet cannot be read as Parquet: .*BYTE_STREAM_SPLIT.*\. Write it in another form/i,
      ],
      [
        'parquet',
        parquet(['prompt_tokens', { type: 'INT64' }, [5n, 5n], { codec: 'LZ4' }]),
        /compression codec "LZ4".*lz4_raw.*\. Write it in another form; data\/README\.md says/,
      ],
      [
        'parquet',
        parquet(['prompt_tokens', INT128, [new Uint8Array(16), new Uint8Array(16)]]),
        /prompt_tokens is of type FIXED_LEN_BYTE_ARRAY, which cannot hold it: write it as BIGINT/,
      ],
      ['arrow', 'ARROW1', /rows\.arrow cannot be read as Arrow IPC/],
      ['arrow', cut(10, arrow()), /rows\.arrow is not a whole Arrow IPC file/],
      ...[8, 300].map((bytes) => {
        return ['arrow', cut(bytes, fileOf('arrow')), /rows\.arrow is not a whole Arrow IPC file/] as const
      }),
      [
        'ndjson.zst',
        (day) => Buffer.concat([zst(JSON_ROW)(day), Buffer.from(JSON_ROW)]),
        /the bytes after byte \d+ are not compressed/,
      ],
      ...['', '\uFEFF'].map((mark) => {
        const content = (day: string) => Buffer.from(mark + manyRows().replaceAll('DAY', day), 'utf16le')
        return ['csv', content, /its first bytes are those of text in UTF-16/] as const
      }),
      ['csv', 'PK\u0003\u0004', /a ZIP archive, such as a workbook\. Write it as CSV or NDJSON in UTF-8/],
    ] as const satisfies readonly Fault[]
  ).map(([ending, content, message], index) => [
    `${ending}: broken file ${index + 1}: ${message.source}`,
    content,
    message,
  ])

  /** Names that lie: `import` looks at the content. */
  const misnamed: readonly Fault[] = [
    ['parquet: an empty file', '', /rows\.parquet cannot be read as Parquet/],
    ['arrow: CSV', manyRows(), /rows\.arrow is not a whole Arrow IPC file: .* Write it again, or as Parquet/],
    [
      'csv: gzip without .gz',
      gz(manyRows()),
      /is not text in UTF-8: its first bytes are those of gz\. Its name must end in \.gz/,
    ],
    [
      'csv: lines that end in a carriage return',
      manyRows().replaceAll('\n', '\r'),
      /has no column completion_tokens.* in a first line that ends in \\n/s,
    ],
    ['ndjson.gz: text that is not compressed', JSON_ROW, /cannot be read: incorrect header check/],
    ['json: a JSON list', `[${JSON_ROW}]`, /is a JSON list, .* npm run nightly -- import FILE/],
    [
      'json: JSON as jq prints it',
      JSON_ROW.replaceAll(/[{,]/g, '$&\n'),
      /JSON over several lines; .* import FILE/,
    ],
    ['ndjson: several objects a line', JSON_ROW.trim().repeat(2), /not one JSON object: write one a line/],
    [
      'csv: columns separated by semicolons',
      csvRows('', '').replaceAll(',', ';'),
      /has no column ts, app_id.* Its columns are: ts;app_id.* CSV names them in a first line .* separated by commas/,
    ],
  ]

  const faults = [...cases, ...broken, ...misnamed]
  const dataDir = folderOf(faults.map(([name, content]) => [name, content]))
  const half = Math.floor(faults.length / 2)
  let message = ''

  // Either half has a file that cannot be read, so that each day is counted alone.
  beforeAll(() => tryDays(0, half))
  beforeAll(() => tryDays(half + 1, faults.length))

  async function tryDays(first: number, last: number): Promise<void> {
    const range = { from: dayOf(first), to: dayOf(last) }
    await runAt(dataDir, AS_OF, { range }).catch((error: Error) => (message += `${error.message}\n`))
  }

  it.each(faults.map(([name, , words], index) => [name, dayOf(index), words] as const))(
    '%s',
    (_, day, words) => {
      const lines = message.split('\n')
      const first = lines.findIndex((line) => line.includes(day))
      const next = lines.findIndex((line, index) => index > first && /^(?:Day|usage)/.test(line))
      expect(lines.slice(first, next < 0 ? undefined : next).join('\n')).toMatch(words)
    },
  )

  it.each(broken.map(([name, , words], index) => [name, dayOf(cases.length + index), words] as const))(
    'import alike: %s',
    async (name, day, words) => {
      const ended = await runCommand(makeFolder(), 'import', join(dataDir, 'raw', pathOf(name, day)))
      expect(ended).toMatchObject({ code: 1, stderr: expect.stringMatching(words) })
    },
  )
})

describe('the app registry', () => {
  const columns = (id: bigint): Columns => ({
    app_id: [id],
    APP_NAME: [`App ${id}`],
    visibility: ['public'],
    subcategories: ['game'],
    updated_at: ['2025-01-01T00:00:00Z'],
    note: ['\u0001'],
  })

  it('may be in any format, and in several', async () => {
    const dataDir = withApps('One')
    for (const [index, format] of FORMATS.entries())
      writeRaw(dataDir, `apps/more.${format}`, rawFile(format, Object.entries(columns(BigInt(index + 2)))))
    writeRaw(dataDir, 'usage/date=2026-01-05/rows.ndjson', JSON_ROW.replace('DAY', '2026-01-05'))
    await runAt(dataDir, AS_OF)
    expect(await queryWarehouse(dataDir, 'SELECT app_id, app_name FROM registry ORDER BY app_id')).toEqual([
      { app_id: '1', app_name: 'One' },
      ...FORMATS.map((_, index) => ({ app_id: `${index + 2}`, app_name: `App ${index + 2}` })),
    ])
  })

  it.each([
    ['csv', 'app_id,app_name\n29,Nameless\n', 'apps/rows.csv has no column visibility'],
    [
      'csv.gz',
      gzipSync('app_id,app_name,visibility,updated_at\n').subarray(0, -1),
      'apps/rows.csv.gz cannot be read: unexpected end',
    ],
    ['ndjson', '{"app_id":1', 'apps/rows.ndjson, row 1: not one JSON object'],
    ['parquet', 'PAR1', 'apps/rows.parquet cannot be read as Parquet'],
    ['arrow', 'ARROW1', 'apps/rows.arrow cannot be read as Arrow IPC'],
  ])('a broken file, .%s, fails the run and is named', async (ending, content, words) => {
    const dataDir = withApps('One')
    writeRaw(dataDir, `apps/rows.${ending}`, content)
    writeRaw(dataDir, 'usage/date=2026-01-05/rows.ndjson', JSON_ROW.replace('DAY', '2026-01-05'))
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(words)
  })
})
