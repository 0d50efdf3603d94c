/** CONTRACT 7: usage is also counted by model, in the same pass; the column's value never invalidates a row. */
import { describe, expect, it } from 'vitest'
import { makeFolder } from '../../support/folders.ts'
import { queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { queryCurrent, register, writeRaw } from '../../support/pipeline/nightly.ts'
import { FORMATS, rawFile, type RawColumn } from '../../support/pipeline/raw-files.ts'

const DAY = '2026-01-05'
const AS_OF = '2026-01-06T02:00:00Z'
const REGISTRY = [
  '1,One,public,,,2025-01-01',
  '2,Two,public,,,2025-01-01',
  '3,Hidden,hidden,,,2025-01-01',
  '4,One again,public,,1,2025-01-01',
  '5,Of the hidden one,public,,3,2025-01-01',
]
const USAGE = 'usage_by_model LEFT JOIN models ON key = model_key'
const BY_MODEL = `SELECT * EXCLUDE (day, key, model_key) FROM ${USAGE} ORDER BY app_id, model`

function folder(): string {
  const dataDir = makeFolder()
  register(dataDir, REGISTRY)
  return dataDir
}

function writeDay(
  dataDir: string,
  lines: readonly string[],
  header = 'ts,app_id,prompt_tokens,completion_tokens,model',
) {
  writeRaw(dataDir, `usage/date=${DAY}/rows.csv`, `${[header, ...lines].join('\n')}\n`)
}

/** One row of each kind: app, model, prompt, completion, reasoning and cached tokens. */
const ROWS = [
  [1n, 'acme/large', 10n, 5n, '2', '4'],
  [1n, 'acme/large:free', 1n, 1n, '1', '1'],
  [1n, 'Acme/Large-2.5', 3n, 0n, '0', '0'],
  [1n, 'acme/parts-unknown', 10n, 5n, '', ''],
  [2n, 'acme/large', 100n, 50n, '51', '100'],
  [2n, 'large', 7n, 7n, '3', 'none'],
  [2n, 'other', 8n, 8n, '', '-1'],
  [2n, 'acme/large/too', 9n, 9n, '0', '1000000000000000000000000000000'],
  [2n, '<b>/</b>', 1n, 1n, '', ''],
  [2n, '', 2n, 2n, '0.5', '0'],
] as const

const NAMES = ['app_id', 'model', 'prompt_tokens', 'completion_tokens', 'reasoning_tokens', 'cached_tokens']
const COLUMNS: readonly RawColumn[] = [
  ['ts', ROWS.map(() => DAY)],
  ...NAMES.map((name, index): RawColumn => [name, ROWS.map((row) => row[index] ?? '')]),
]

const FIGURES = ['requests', 'prompt_tokens', 'completion_tokens', 'reasoning_tokens', 'cached_tokens']

function counted(app: number, model: string | null, figures: readonly number[]) {
  const texts = FIGURES.map((name, index) => [name, String(figures[index])])
  return { app_id: String(app), model, ...Object.fromEntries(texts) }
}

const COUNTED = [
  counted(1, 'Acme/Large-2.5', [1, 3, 0, 0, 0]),
  counted(1, 'acme/large', [2, 11, 6, 3, 5]),
  counted(1, 'acme/parts-unknown', [1, 10, 5, 0, 0]),
  // The reasoning tokens of this row exceed its completion tokens.
  counted(2, 'acme/large', [1, 100, 50, 0, 100]),
  counted(2, null, [5, 27, 27, 3, 0]),
]

const BY_APP = 'SELECT * EXCLUDE (day) FROM usage_daily ORDER BY app_id'
const COUNTED_BY_APP = [
  { app_id: '1', requests: '4', prompt_tokens: '24', completion_tokens: '11' },
  { app_id: '2', requests: '6', prompt_tokens: '127', completion_tokens: '77' },
]

describe('the warehouse', () => {
  it.each(FORMATS)('has each model of an app with its token parts, from %s', async (format) => {
    const dataDir = folder()
    writeRaw(dataDir, `usage/date=${DAY}/rows.${format}`, rawFile(format, COLUMNS))
    await runAt(dataDir, AS_OF)
    expect(await queryWarehouse(dataDir, BY_MODEL)).toEqual(COUNTED)
    expect(await queryWarehouse(dataDir, BY_APP)).toEqual(COUNTED_BY_APP)
  })

  it('has a model whose token parts are all unknown, from a Parquet file of few groups', async () => {
    const dataDir = folder()
    const columns = COLUMNS.map(([name, cells]): RawColumn => [name, cells.slice(3, 4)])
    writeRaw(dataDir, `usage/date=${DAY}/rows.parquet`, rawFile('parquet', columns))
    await runAt(dataDir, AS_OF)
    expect(await queryWarehouse(dataDir, BY_MODEL)).toEqual([COUNTED[2]])
  })

  it('has no rows by model for usage without models, and follows the files of a day', async () => {
    const dataDir = folder()
    for (const [hour, model, expected] of [
      ['02', 'gpt', []],
      ['03', 'acme/large', [counted(1, 'acme/large', [1, 10, 5, 0, 0])]],
      ['04', '', []],
    ] as const) {
      writeDay(dataDir, [`${DAY},1,10,5,${model}`])
      await runAt(dataDir, AS_OF.replace('02', hour))
      expect(await queryWarehouse(dataDir, BY_MODEL)).toEqual(expected)
    }
  })

  it('counts the model of the winning row of a request_id, in any order', async () => {
    const header = 'ts,app_id,prompt_tokens,completion_tokens,model,request_id'
    const lines = [
      `${DAY},1,10,5,acme/small,r1`,
      `${DAY},1,10,5,acme/large,r1`,
      `${DAY},1,10,5,acme/large,r2`,
      `${DAY}T01:00:00Z,1,10,5,acme/small,r2`,
      `${DAY},1,10,5,acme/small,r3`,
      `${DAY},1,10,5,acme/small,r3`,
    ]
    for (const rows of [lines, lines.toReversed()]) {
      const dataDir = folder()
      writeDay(dataDir, rows, header)
      await runAt(dataDir, AS_OF)
      expect(await queryWarehouse(dataDir, `SELECT model, requests FROM ${USAGE} ORDER BY model`)).toEqual([
        { model: 'acme/small', requests: '3' },
      ])
    }
  })
})

describe('the table model_daily', () => {
  const MODELS = 'SELECT model_permaslug AS model, requests, prompt_tokens FROM model_daily ORDER BY ALL'

  it('has the usage of public apps only: aliases count, other apps are neither in a model nor in other', async () => {
    const dataDir = folder()
    writeDay(dataDir, [
      `${DAY},1,1,0,acme/large`,
      `${DAY},4,10,0,acme/large`,
      `${DAY},2,100,0,`,
      `${DAY},3,1000,0,acme/large`,
      `${DAY},5,10000,0,acme/secret`,
      `${DAY},99,100000,0,`,
      `${DAY},0,1000000,0,acme/large`,
    ])
    await runAt(dataDir, AS_OF)
    expect(await queryCurrent(dataDir, MODELS)).toEqual([
      { model: 'acme/large', requests: '2', prompt_tokens: '11' },
      { model: 'other', requests: '1', prompt_tokens: '100' },
    ])
    register(dataDir, ['3,Hidden,public,,,2025-02-01', '2,Two,hidden,,,2025-02-01'], 'later.csv')
    await runAt(dataDir, AS_OF.replace('02', '03'), { accepted: ['apps', 'volume', 'rows'] })
    expect(await queryCurrent(dataDir, MODELS)).toEqual([
      { model: 'acme/large', requests: '3', prompt_tokens: '1011' },
      { model: 'acme/secret', requests: '1', prompt_tokens: '10000' },
    ])
  })

  it.each(FORMATS)('holds totals of two counts past 2^63 exactly, from %s', async (format) => {
    const dataDir = folder()
    const most = 2n ** 63n - 1n
    const columns: readonly RawColumn[] = [
      ['ts', [DAY, DAY]],
      ['app_id', [1n, 2n]],
      ['prompt_tokens', [most, 0n]],
      ['completion_tokens', [most - 9n, 9n]],
      ['model', ['acme/large', 'acme/large']],
    ]
    writeRaw(dataDir, `usage/date=${DAY}/rows.${format}`, rawFile(format, columns))
    await runAt(dataDir, AS_OF)
    const totals = `SELECT model_permaslug, total_tokens FROM daily_models('${DAY}', '${DAY}')`
    const expected = [{ model_permaslug: 'acme/large', total_tokens: String(2n * most) }]
    expect(await queryCurrent(dataDir, totals)).toEqual(expected)
  })
})
