/**
 * CONTRACT 7: raw usage in every format alike: rows that are read, rows that are not valid, and files that cannot be
 * read.
 */
import {
  columnFromArray,
  decimal,
  dictionary,
  float32,
  int32,
  int64,
  setCompressionCodec,
  tableFromColumns,
  tableToIPC,
  timestamp,
  TimeUnit,
  utf8,
} from '@uwdata/flechette'
import type { Column } from '@uwdata/flechette'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { compressFrameSync } from 'lz4-napi'
import { crc32, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'
import { FORMATS, rawFile, parquetWithBytes } from '../../support/pipeline/raw-files.ts'
import type { RawColumn, RawFormat } from '../../support/pipeline/raw-files.ts'

const AS_OF = '2026-12-31T02:00:00Z'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** A file on its own day. */
type Case = {
  readonly name: string
  readonly ending: string
  readonly content: (day: string) => string | Uint8Array
}

function dayOf(index: number): string {
  return new Date(Date.UTC(2026, 0, 1 + index)).toISOString().slice(0, 10)
}

/** One DATA_DIR with a day per case, so that one run suffices. */
function folderOf(cases: readonly Case[]): string {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  for (const [index, { ending, content }] of cases.entries()) {
    writeRaw(dataDir, `usage/date=${dayOf(index)}/rows.${ending}`, content(dayOf(index)))
  }
  return dataDir
}

/** Columns of two valid rows: 12 tokens. */
function good(day: string): Record<string, RawColumn[1]> {
  return {
    ts: [`${day}T10:00:00Z`, `${day}T11:00:00Z`],
    app_id: [1n, 1n],
    prompt_tokens: [5n, 5n],
    completion_tokens: [1n, 1n],
  }
}

/** The same case in each format, with some columns replaced. */
function inFormats(
  name: string,
  columns: (day: string) => Record<string, RawColumn[1]>,
  formats: readonly RawFormat[] = FORMATS,
): Case[] {
  return formats.map((format) => ({
    name: `${name} in ${format}`,
    ending: format,
    content: (day) => rawFile(format, Object.entries(columns(day))),
  }))
}

function arrow(columns: (day: string) => Record<string, Column<unknown>>): Case['content'] {
  return (day) => {
    const { ts, app_id, prompt_tokens, completion_tokens } = good(day)
    const table = tableFromColumns({
      ts: columnFromArray([...(ts ?? [])], utf8()),
      app_id: columnFromArray([...(app_id ?? [])], int64()),
      prompt_tokens: columnFromArray([...(prompt_tokens ?? [])], int64()),
      completion_tokens: columnFromArray([...(completion_tokens ?? [])], int64()),
      ...columns(day),
    })
    return tableToIPC(table, { format: 'file' }) ?? new Uint8Array()
  }
}

/** Codecs of Arrow's buffers, by their number in the format. */
const CODECS = [
  [0, 'LZ4', (bytes: Buffer) => compressFrameSync(bytes)],
  [1, 'ZSTD', (bytes: Buffer) => zstdCompressSync(bytes)],
] as const

const HEADER = 'ts,app_id,prompt_tokens,completion_tokens'

function csvRow(day: string, further = ''): string {
  return `${day}T10:00:00Z,1,5,1${further}\n`
}

function jsonRow(day: string, further = ''): string {
  return `{"ts":"${day}T10:00:00Z","app_id":1,"prompt_tokens":5,"completion_tokens":1${further}}\n`
}

/** A CSV file of many rows, with a line between them. */
function manyRows(line = '') {
  return (day: string) => `${HEADER}\n${csvRow(day).repeat(3000)}${line}${csvRow(day).repeat(30)}`
}

function inFormat(format: RawFormat) {
  return (day: string) => rawFile(format, Object.entries(good(day)))
}

function cut(content: string | Uint8Array, bytes: number): Uint8Array {
  return Buffer.from(content).subarray(0, -bytes)
}

/** A .gz with a rare header field. */
function gzipWith(flag: number, field: Buffer, text: string): Buffer {
  const plain = gzipSync(text)
  plain.writeUInt8(flag, 3)
  return Buffer.concat([plain.subarray(0, 10), field, plain.subarray(10)])
}

/** With a header checksum. */
function gzipWithSum(text: string): Buffer {
  const header = gzipSync(text).subarray(0, 10)
  header.writeUInt8(2, 3)
  const sum = Buffer.alloc(2)
  sum.writeUInt16LE(crc32(header) & 0xff_ff)
  return gzipWith(2, sum, text)
}

/** An uncompressed one-block frame as of `zstd --long=28`: reading it takes a window of 256 MB. */
function zstdLong(text: string): Buffer {
  const block = Buffer.alloc(3)
  block.writeUIntLE((text.length << 3) | 1, 0, 3)
  return Buffer.concat([Buffer.from('28b52ffd0090', 'hex'), block, Buffer.from(text)])
}

/** A Parquet file with a BYTE_STREAM_SPLIT column of integers. */
function encodedParquet(columns: Record<string, RawColumn[1]>, split: string): Uint8Array {
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: Object.entries(columns).map(([name, data]) => ({
        name,
        data: [...data],
        type: name === 'ts' ? 'STRING' : 'INT64',
        ...(name === split ? { encoding: 'BYTE_STREAM_SPLIT' as const } : {}),
      })),
    }),
  )
}

/** Every value as its text, an empty one as null. */
function untypedParquet(columns: Record<string, RawColumn[1]>): Uint8Array {
  return new Uint8Array(
    parquetWriteBuffer({
      schema: [
        { name: 'schema', num_children: Object.keys(columns).length },
        ...Object.keys(columns).map(
          (name) => ({ name, type: 'BYTE_ARRAY', repetition_type: 'OPTIONAL' }) as const,
        ),
      ],
      columnData: Object.entries(columns).map(([name, cells]) => ({
        name,
        data: cells.map((cell) => (cell === '' ? null : Buffer.from(String(cell)))),
      })),
    }),
  )
}

describe('two rows of 12 tokens are read', () => {
  const cases: Case[] = [
    ...inFormats('columns named in capitals, with spaces around them,', (day) =>
      Object.fromEntries(
        Object.entries(good(day)).map(([name, cells]) => [` ${name.toUpperCase()} `, cells]),
      ),
    ),
    ...inFormats('a descriptive column given twice', (day) => ({
      ...good(day),
      model: ['a', 'b'],
      Model: ['', ''],
    })),
    ...inFormats('counts as floating-point numbers', (day) => ({ ...good(day), prompt_tokens: [5, 5] })),
    ...inFormats('zeros behind the point of texts', (day) => ({
      ...good(day),
      prompt_tokens: ['5.0', '5.000000'],
    })),
    ...[
      'T10:00Z',
      't10:00:00z',
      ' 10:00',
      'T10Z',
      'T12:00+02:00',
      'T10:00:00,123Z',
      'T10:00:00.123456789Z',
    ].flatMap((time) =>
      inFormats(`the time ${time}`, (day) => ({ ...good(day), ts: [`${day}${time}`, `${day}${time}`] })),
    ),
    ...['T100000Z', 'T1000Z', 'T100000.5+0000'].flatMap((time) =>
      inFormats(`the basic form ${time}`, (day) => {
        const text = `${day.replaceAll('-', '')}${time}`
        return { ...good(day), ts: [text, text] }
      }),
    ),
    {
      name: 'stray bytes in a further column of CSV',
      ending: 'csv',
      content: (day) =>
        Buffer.from(`${HEADER},model\n${csvRow(day, ',caf\xE9')}${csvRow(day, ',\xFF')}`, 'latin1'),
    },
    {
      name: 'stray bytes in a further column of compressed CSV',
      ending: 'csv.gz',
      content: (day) =>
        gzipSync(
          Buffer.from(`${HEADER},note\n${csvRow(day, ',"a\xE9\n"')}${csvRow(day, ',\xFF')}`, 'latin1'),
        ),
    },
    {
      name: 'stray bytes and halves of surrogate pairs in further keys of NDJSON',
      ending: 'ndjson',
      content: (day) =>
        Buffer.from(
          jsonRow(day, ',"model":"\\ud800 \\\\ud800 \\ud83d\\ude00"') +
            jsonRow(day, ',"m":"\xFF","n":"\\uDC00"'),
          'latin1',
        ),
    },
    ...inFormats('control characters in columns that need not be there', (day) => ({
      ...good(day),
      model: ['acme/\u0000large', '\u0000'],
      provider: ['\u0001', 'a\u0000'],
      request_id: ['a\u0000', '\u0000'],
      note: ['\u0000', '\u001F'],
    })),
    ...['ndjson', 'ndjson.gz'].map((ending) => ({
      name: `control characters that are not escaped in texts of ${ending}`,
      ending,
      content: (day: string) => {
        const rows =
          jsonRow(day, ',"model":"a\u0000","note":"\\"\t\u0000\u001F"') + jsonRow(day, ',"a\u0000b":"\u0001"')
        return ending === 'ndjson' ? rows : gzipSync(rows)
      },
    })),
    {
      name: 'a descriptive column of Parquet in an encoding that cannot be read',
      ending: 'parquet',
      content: (day) => encodedParquet({ ...good(day), cached_tokens: [1n, 2n] }, 'cached_tokens'),
    },
    {
      name: 'stray bytes in a further column of Parquet',
      ending: 'parquet',
      content: (day) => parquetWithBytes(good(day)),
    },
    {
      name: 'text that Parquet holds as bytes without a type',
      ending: 'parquet',
      content: (day) => untypedParquet({ ...good(day), app_id: ['', ''], app: ['One', 'ONE'] }),
    },
    {
      name: 'blank lines of spaces and tabs in NDJSON',
      ending: 'ndjson',
      content: (day) => `\t\n${jsonRow(day)} \t\r\n\t${jsonRow(day)}\t`,
    },
    {
      name: 'objects and lists in further keys of NDJSON',
      ending: 'ndjson',
      content: (day) => jsonRow(day, ',"model":{"a":1},"x":[1]') + jsonRow(day, ',"cached_tokens":{"a":-1}'),
    },
    {
      name: 'dictionary-encoded times of Arrow',
      ending: 'arrow',
      content: arrow((day) => ({
        ts: columnFromArray(
          [Date.parse(day), Date.parse(day)],
          dictionary(timestamp(TimeUnit.MICROSECOND, 'UTC'), int32()),
        ),
      })),
    },
    {
      name: 'dictionary-encoded decimals of Arrow',
      ending: 'arrow',
      content: arrow(() => ({
        prompt_tokens: columnFromArray([5, 5], dictionary(decimal(10, 3, 128), int32())),
      })),
    },
    ...CODECS.map(([codec, name, encode]): Case => ({
      name: `Arrow with buffers compressed by ${name}`,
      ending: 'arrow',
      content: (day) => {
        setCompressionCodec(codec, {
          encode: (bytes) => encode(Buffer.from(bytes)),
          decode: (bytes) => bytes,
        })
        const columns: [string, Column<unknown>][] = Object.entries(good(day)).map(
          ([column, cells]) =>
            [column, columnFromArray([...cells], typeof cells[0] === 'bigint' ? int64() : utf8())] as const,
        )
        return tableToIPC(tableFromColumns(columns), { format: 'file', codec }) ?? new Uint8Array()
      },
    })),
    {
      name: 'a line break and quotes in the name of a further column of CSV',
      ending: 'csv',
      content: (day) => `"a ""note""\nof two, lines",${HEADER}\nx,${csvRow(day)}"y\n",${csvRow(day)}`,
    },
    ...inFormats('zeros with a sign', (day) => ({
      ...good(day),
      requests: [-0, -0],
      completion_tokens: ['1', '1'],
    })),
    {
      name: 'a .gz filled up with zeros',
      ending: 'ndjson.gz',
      content: (day) => Buffer.concat([gzipSync(jsonRow(day).repeat(2)), Buffer.alloc(512)]),
    },
    {
      name: 'a .gz file with a comment',
      ending: 'csv.gz',
      content: (day) => gzipWith(16, Buffer.from('made by hand\0'), `${HEADER}\n${csvRow(day).repeat(2)}`),
    },
    {
      name: 'a .gz file with a header checksum',
      ending: 'ndjson.gz',
      content: (day) => gzipWithSum(jsonRow(day).repeat(2)),
    },
    {
      name: 'a .gz of two members',
      ending: 'csv.gz',
      content: (day) => Buffer.concat([gzipSync(`${HEADER}\n${csvRow(day)}`), gzipSync(csvRow(day))]),
    },
    {
      name: 'a .zst of two frames',
      ending: 'ndjson.zst',
      content: (day) => Buffer.concat([zstdCompressSync(jsonRow(day)), zstdCompressSync(jsonRow(day))]),
    },
    ...['csv', 'csv.gz'].map((ending) => ({
      name: `10 MB of lines inside of quotes that look like rows, behind a misplaced quote, in ${ending}`,
      ending,
      content: (day: string) => {
        const lines = `\n${csvRow(day)}`.repeat(60_000).match(/[^]{1,1000000}/g) ?? []
        const rows = [csvRow(day, ',5" or so'), csvRow(day, `,"${lines.join('')}"`)]
        return ending === 'csv'
          ? `${HEADER},note\n${rows.join('')}`
          : gzipSync(`${HEADER},note\n${rows.join('')}`)
      },
    })),
    {
      name: 'lines inside of quotes that look like rows, behind a misplaced quote,',
      ending: 'csv',
      content: (day) =>
        `${HEADER},note\n${csvRow(day, ',5" or so')}${csvRow(day, `,"${`\n${csvRow(day)}`.repeat(100)}"`)}`,
    },
  ]
  let dataDir = ''
  let days: Awaited<ReturnType<typeof queryWarehouse>> = []

  beforeAll(async () => {
    dataDir = folderOf(cases)
    await runAt(dataDir, AS_OF)
    days = await queryWarehouse(dataDir, 'SELECT day, rows_read, rows_rejected, tokens_read FROM days')
  })

  it.each(cases.map(({ name }, index) => [name, dayOf(index)]))('%s', (_, day) => {
    expect(days.find((row) => row['day'] === day)).toEqual({
      day,
      rows_read: '2',
      rows_rejected: '0',
      tokens_read: '12',
    })
  })
})

describe('the run fails for', () => {
  const notInteger = /2 rows: prompt_tokens is not an integer, 0 or more/
  const cases: readonly (Case & { readonly message: RegExp })[] = [
    ...inFormats(
      'a column given twice, by its capitals,',
      (day) => ({ ...good(day), Prompt_Tokens: [0n, 0n] }),
      ['csv', 'parquet', 'arrow'],
    ).map((one) => ({
      ...one,
      message: /names the column "prompt_tokens" twice: as "prompt_tokens" and as "Prompt_Tokens"/,
    })),
    ...inFormats(
      'a column given twice, by the spaces around it,',
      (day) => ({ ...good(day), request_id: ['a', 'b'], ' request_id': ['', ''] }),
      ['csv', 'parquet', 'arrow'],
    ).map((one) => ({
      ...one,
      message: /names the column "request_id" twice: as "request_id" and as " request_id"/,
    })),
    ...(['csv', 'parquet', 'arrow'] as const).map((format) => ({
      name: `a column given twice, in all its letters, in ${format}`,
      ending: format,
      content: (day: string) => rawFile(format, [...Object.entries(good(day)), ['prompt_tokens', [0n, 0n]]]),
      message: /names the column "prompt_tokens" twice: as "prompt_tokens" and as "prompt_tokens"/,
    })),
    {
      name: 'a key given twice in NDJSON, by its capitals',
      ending: 'ndjson',
      content: (day) => jsonRow(day, ',"Prompt_Tokens":0').repeat(2),
      message: /2 rows: the key prompt_tokens stands twice: prompt_tokens and Prompt_Tokens/,
    },
    ...inFormats('numbers that may be thousands', (day) => ({
      ...good(day),
      prompt_tokens: ['12.000', '1.000'],
    })).map((one) => ({ ...one, message: notInteger })),
    ...inFormats('NaN and infinity', (day) => ({ ...good(day), prompt_tokens: [NaN, Infinity] }), [
      'csv',
      'parquet',
      'arrow',
    ]).map((one) => ({ ...one, message: notInteger })),
    {
      name: 'requests that are NaN, which the footer leaves out,',
      ending: 'parquet',
      content: (day) => rawFile('parquet', Object.entries({ ...good(day), requests: [1, NaN] })),
      message: /1 row: requests is not an integer from 0 to 10\^12/,
    },
    ...(['csv', 'ndjson'] as const).map((ending) => ({
      name: `apps that are not UTF-8 in ${ending}`,
      ending,
      content: (day: string) => {
        const row =
          ending === 'csv'
            ? `${day},Caf\xE9 Chat,5,1\n`
            : `{"ts":"${day}","app":"Caf\xE9 Chat","prompt_tokens":5,"completion_tokens":1}\n`
        const header = ending === 'csv' ? HEADER.replace('app_id', 'app') + '\n' : ''
        return Buffer.from(header + row.repeat(2), 'latin1')
      },
      message: /2 rows: app is not readable text in UTF-8/,
    })),
    {
      name: 'ids that are NaN',
      ending: 'parquet',
      content: (day) => rawFile('parquet', Object.entries({ ...good(day), app_id: [1, NaN] })),
      message: /1 row: app_id is not an integer/,
    },
    ...inFormats('floating-point counts from 2^53 on', (day) => ({
      ...good(day),
      prompt_tokens: [2 ** 53, 2 ** 60],
    })).map((one) => ({ ...one, message: notInteger })),
    ...inFormats('floating-point ids from 2^53 on', (day) => ({
      ...good(day),
      app_id: [2 ** 53, 2 ** 60],
    })).map((one) => ({ ...one, message: /2 rows: app_id is not an integer, 0 or more/ })),
    {
      name: '32-bit floating-point counts from 2^24 on in arrow',
      ending: 'arrow',
      content: arrow(() => ({ prompt_tokens: columnFromArray([5, 3e10], float32()) })),
      message: /1 of 2 rows.* prompt_tokens is not an integer/s,
    },
    {
      name: '32-bit floating-point counts from 2^24 on in parquet',
      ending: 'parquet',
      content: (day) =>
        new Uint8Array(
          parquetWriteBuffer({
            columnData: Object.entries({ ...good(day), prompt_tokens: [5, 3e10] }).map(([name, data]) => ({
              name,
              data: [...data],
              ...(name === 'prompt_tokens' ? { type: 'FLOAT' as const } : {}),
            })),
          }),
        ),
      message: /1 of 2 rows.* prompt_tokens is not an integer/s,
    },
    ...(
      [
        ['csv', () => '', /rows\.csv is empty: expected a first line with the column names/],
        [
          'csv',
          () => 'ts,app_id,prompt_tokens\n',
          /rows\.csv has no column completion_tokens\. Its columns are: ts, app_id/,
        ],
        ['csv', () => `${HEADER},ts\n`, /rows\.csv names the column "ts" twice/],
        ['csv', manyRows('"2026-01-05T00:00:00Z,1,1,1\n'), /rows\.csv cannot be read: Quote Not Closed/],
        ['csv', (day) => gzipSync(manyRows()(day)), /It is compressed by gzip: its name must end in \.gz/],
        ['csv', (day) => Buffer.from(`\uFEFF${manyRows()(day)}`, 'utf16le'), /It is text in UTF-16/],
        ['csv.gz', (day) => cut(gzipSync(manyRows()(day)), 10), /cannot be read: unexpected end of file/],
        ['csv.gz', (day) => cut(gzipSync(manyRows()(day)), 1), /cannot be read: unexpected end of file/],
        ['csv.zst', (day) => cut(zstdCompressSync(manyRows()(day)), 10), /rows\.csv\.zst cannot be read/],
        ['csv.zst', (day) => cut(zstdCompressSync(manyRows()(day)), 1), /rows\.csv\.zst cannot be read/],
        ['parquet', () => 'PAR1', /rows\.parquet cannot be read as Parquet/],
        ['parquet', () => '', /rows\.parquet cannot be read as Parquet/],
        ['parquet', (day) => cut(inFormat('parquet')(day), 10), /rows\.parquet cannot be read as Parquet/],
        ['arrow', () => 'ARROW1', /rows\.arrow cannot be read as Arrow IPC/],
        ['arrow', () => '', /rows\.arrow is not a whole Arrow IPC file/],
        ['arrow', manyRows(), /rows\.arrow is not a whole Arrow IPC file/],
        ['arrow', (day) => cut(arrow(() => ({}))(day), 10), /rows\.arrow is not a whole Arrow IPC file/],
        ['arrow', (day) => cut(inFormat('arrow')(day), 8), /rows\.arrow is not a whole Arrow IPC file/],
        ['arrow', (day) => cut(inFormat('arrow')(day), 300), /rows\.arrow is not a whole Arrow IPC file/],
      ] as const satisfies readonly (readonly [string, Case['content'], RegExp])[]
    ).map(([ending, content, message], index) => ({
      name: `broken file ${index + 1}, .${ending}: ${message.source}`,
      ending,
      content,
      message,
    })),
    {
      name: 'an object as request_id in NDJSON',
      ending: 'ndjson',
      content: (day) => jsonRow(day, ',"request_id":{"id":1}').repeat(2),
      message: /2 rows: request_id is an object or a list, not one value/,
    },
    {
      name: 'a DECIMAL of more than 38 digits',
      ending: 'parquet',
      content: (day) => {
        const { prompt_tokens: _, ...others } = good(day)
        return new Uint8Array(
          parquetWriteBuffer({
            schema: [
              { name: 'schema', num_children: 4 },
              {
                name: 'prompt_tokens',
                type: 'FIXED_LEN_BYTE_ARRAY',
                type_length: 21,
                converted_type: 'DECIMAL',
                precision: 50,
                scale: 0,
                repetition_type: 'REQUIRED',
              },
              { name: 'ts', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
              { name: 'app_id', type: 'INT64', repetition_type: 'REQUIRED' },
              { name: 'completion_tokens', type: 'INT64', repetition_type: 'REQUIRED' },
            ],
            columnData: [
              { name: 'prompt_tokens', data: [3n, 3n] },
              ...Object.entries(others).map(([name, data]) => ({ name, data: [...data] })),
            ],
          }),
        )
      },
      message:
        /the column prompt_tokens is a DECIMAL of 50 digits, .* Write it as BIGINT or DECIMAL\(38, 0\)/,
    },
    {
      name: 'integers encoded as BYTE_STREAM_SPLIT',
      ending: 'parquet',
      content: (day) => encodedParquet(good(day), 'prompt_tokens'),
      message: /Integers are encoded as BYTE_STREAM_SPLIT: write the file with plain or dictionary encoding/,
    },
    {
      name: 'a .zst with a window of more than 128 MB',
      ending: 'ndjson.zst',
      content: (day) => zstdLong(jsonRow(day)),
      message:
        /made by zstd with a window of more than 128 MB: compress it without --long, or with --long=27/,
    },
    ...['ndjson.gz', 'ndjson.zst'].map((ending) => ({
      name: `text that is not compressed in .${ending}`,
      ending,
      content: jsonRow,
      message: /It does not begin with the compression of its name: rename the file, or compress it/,
    })),
    {
      name: 'bytes behind a .zst that are not compressed',
      ending: 'ndjson.zst',
      content: (day) => Buffer.concat([zstdCompressSync(jsonRow(day)), Buffer.from(jsonRow(day))]),
      message: /the bytes after byte \d+ are not compressed/,
    },
  ]
  let message = ''

  beforeAll(async () => {
    await runAt(folderOf(cases), AS_OF).catch((error: Error) => {
      message = error.message
    })
  })

  it.each(cases.map(({ name, message: words }, index) => [name, dayOf(index), words] as const))(
    '%s',
    (_, day, words) => {
      const lines = message.split('\n')
      const first = lines.findIndex((line) => line.includes(day))
      const next = lines.findIndex((line, index) => index > first && /^(?:Day|usage)/.test(line))
      expect(lines.slice(first, next < 0 ? undefined : next).join('\n')).toMatch(words)
    },
  )
})
