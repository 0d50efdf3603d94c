/** CONTRACT 7: rejected rows are kept with file, row and reason; more than 1 % of a day fail the run. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { queryCurrent, runCommand, writeRaw, withApps } from '../../support/pipeline/nightly.ts'
import { rawFile } from '../../support/pipeline/raw-files.ts'

const HEADER = 'ts,app_id,prompt_tokens,completion_tokens\n'
const DAY = '2026-01-05'
const FOLDER = `usage/date=${DAY}`
const AS_OF = '2026-01-10T02:00:00Z'

/** Enough valid rows that a few broken ones stay below 1 %. */
const goodCsv = (rows: number) => HEADER + `${DAY}T00:00:00Z,1,1,1\n`.repeat(rows)

function json(further = '"prompt_tokens":1,"completion_tokens":1'): string {
  return `{"ts":"${DAY}T00:00:00Z","app_id":1,${further}}`
}

function folder(files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const dataDir = withApps('One')
  for (const [name, content] of Object.entries(files)) writeRaw(dataDir, `${FOLDER}/${name}`, content)
  return dataDir
}

describe('quarantine', () => {
  const notInteger = (column: string) => `${column} is not an integer, 0 or more`
  const notJson = 'not one JSON object: write one a line'
  const brokenLine = (fields: number) => `broken line: ${fields} fields instead of 4`
  const jsonLines = [json(), json(), 'not json', '', 'not json', json()]
  /** Files, and their rejected rows with the reasons. */
  const files: readonly (readonly [name: string, content: string | Uint8Array, Record<number, string>])[] = [
    [
      'lines.csv.gz',
      gzipSync(
        [
          `\uFEFF${HEADER.trim()}`,
          `${DAY}T00:00:00Z,1,1,1`,
          `${DAY}T00:00:00Z,1,1`,
          `"${DAY}T00:00:00Z","1","1","1"`,
          `${DAY}T00:00:00Z,1,1,-1`,
          'a,b,c,d,e',
          `${DAY}T00:00:00Z,1,-1,1`,
          `${DAY}T00:00:00Z,1,1,${10n ** 27n}`,
        ].join('\r\n'),
      ),
      {
        3: brokenLine(3),
        5: notInteger('completion_tokens'),
        6: brokenLine(5),
        7: notInteger('prompt_tokens'),
        8: notInteger('completion_tokens'),
      },
    ],
    [
      'lines.ndjson',
      [
        json(),
        '',
        'not json',
        '[1,2]',
        json('"prompt":1,"completion_tokens":1'),
        json('"prompt_tokens":null,"completion_tokens":1'),
        json('"prompt_tokens":1.5,"completion_tokens":1'),
        json().replace(DAY, '2026-01-06'),
        json('"prompt_tokens":1,"completion_tokens":1,"requests":-1'),
        `{"ts":"${DAY}T00:00:00Z","app_`,
      ].join('\n'),
      {
        3: notJson,
        4: notJson,
        5: 'the key prompt_tokens is missing',
        6: notInteger('prompt_tokens'),
        7: notInteger('prompt_tokens'),
        8: 'ts is not on the day of its folder',
        9: 'requests is not an integer from 0 to 10^12',
        10: notJson,
      },
    ],
    // Line ends of both kinds, in any order.
    ...[
      ['\n', '\r\n', '\r\n'],
      ['\r\n', '\n', '\n'],
    ].map((ends, index) => {
      const text = jsonLines.map((line, at) => line + ends[at % ends.length]).join('')
      return [`mixed-${index}.ndjson`, text, { 3: notJson, 5: notJson }] as const
    }),
    // With DuckDB's own names for a row and a file.
    ...[-1n, -2n].map((number) => {
      const names = [...HEADER.trim().split(',').slice(1), 'file_row_number', 'file_index']
      const numbers = names.map((name) => [name, [number]] as const)
      const content = rawFile('parquet', [['ts', [`${DAY}T00:00:00Z`]], ...numbers])
      return [`named${number}.parquet`, content, { 1: notInteger('app_id') }] as const
    }),
  ]
  let dataDir = ''

  beforeAll(async () => {
    dataDir = folder({ 'filler.csv': goodCsv(2000) })
    for (const [name, content] of files) writeRaw(dataDir, `${FOLDER}/${name}`, content)
    await runAt(dataDir, AS_OF)
  })

  it.each(files)(
    'names line and reason in %s, header, blank and broken lines counted',
    async (name, _, reasons) => {
      const rows = await queryWarehouse(
        dataDir,
        `SELECT row, reason FROM quarantine WHERE file = '${FOLDER}/${name}' AND rows = 1 ORDER BY quarantine.row`,
      )
      expect(rows).toEqual(Object.entries(reasons).map(([row, reason]) => ({ row, reason })))
    },
  )

  it('keeps the bytes of a broken line', async () => {
    const [torn] = await queryWarehouse(dataDir, 'SELECT payload FROM quarantine WHERE row = 10')
    expect(torn).toEqual({ payload: `{"ts":"${DAY}T00:00:00Z","app_` })
  })

  it('marks the day as partial and publishes the valid rows', async () => {
    expect(await queryCurrent(dataDir, `SELECT * FROM coverage WHERE day = '${DAY}'`)).toEqual([
      { day: DAY, status: 'partial', total_requests: '2009', total_tokens: '4018' },
    ])
  })
})

it('a line of up to 10 MB is counted, and a longer one, which DuckDB would skip, fails the run and is named', async () => {
  const lines = (...lengths: readonly number[]) => ({
    'long.csv': `${HEADER.trim()},note\n${lengths.map((length) => `${`${DAY}T00:00:00Z,1,1,1,`.padEnd(length, 'x')}\n`).join('')}`,
    'long.ndjson': lengths
      .map((length) => `${json().slice(0, -1)},"note":"`.padEnd(length, 'x') + '"}\n')
      .join(''),
  })
  const dataDir = folder(lines(100, 1_999_999, 2_000_000, 100, 9_900_000, 100))
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT rows_read, rows_rejected FROM days')).toEqual([
    { rows_read: '12', rows_rejected: '0' },
  ])
  for (const [name, content] of Object.entries(lines(100, 40_000_000, 100)))
    await expect(runAt(folder({ [name]: content }), AS_OF)).rejects.toThrow(
      `${FOLDER}/${name} cannot be read: it has a line of more than 10 MB`,
    )
})

describe('the limit of 1 %', () => {
  it('allows exactly 1 %, and if exceeded fails the run, which names the file and keeps snapshot and quarantine', async () => {
    const dataDir = folder({ 'rows.csv': `${goodCsv(99)}${DAY}T00:00:00Z,1,x,1\n` })
    const report = await runAt(dataDir, AS_OF)
    expect(fact(report, 'load', 'reject_reasons')).toEqual([
      { reason: 'prompt_tokens is not an integer, 0 or more', rows: 1 },
    ])
    const later = 'usage/date=2026-01-06/rows.csv'
    writeRaw(dataDir, later, `${goodCsv(98)}\u001B[2J\n`.replaceAll(DAY, '2026-01-06'))
    for (const asOf of ['2026-01-11T01:00:00Z', '2026-01-11T02:00:00Z']) {
      const run = await runCommand(dataDir, 'run', '--as-of', asOf)
      expect(run.code).toBe(1)
      expect(run.stderr).toMatch(/Day 2026-01-06: 1 of 99 rows are rejected, more than 1 %/)
      // Control characters of a file do not reach the terminal.
      expect(run.stderr).toMatch(
        /date=2026-01-06\/rows.csv: 1 row: broken line: .*first at row 100: \uFFFD\[2J\n/,
      )
      expect(run.stderr).not.toContain('\u001B')
      expect(run.stderr).not.toMatch(/^\s+at /m)
    }
    expect(await queryWarehouse(dataDir, 'SELECT count(*) AS n FROM quarantine')).toEqual([{ n: '2' }])
    expect(await queryCurrent(dataDir, 'SELECT max(day) AS day FROM app_daily')).toEqual([{ day: DAY }])
    rmSync(join(dataDir, 'raw', later, '..'), { recursive: true })
    await runAt(dataDir, '2026-01-11T03:00:00Z')
    expect(await queryWarehouse(dataDir, 'SELECT count(*) AS n FROM quarantine')).toEqual([{ n: '1' }])
  })

  it('is reported for all broken days together: most common violation first, with its first row, cut short', async () => {
    const rows = ['x,1', '1,x' + '1'.repeat(300), '1,xsecond'].map(
      (values) => `${DAY}T00:00:00Z,${values},1\n`,
    )
    const dataDir = folder({ 'rows.csv': goodCsv(1) + rows.join('') })
    writeRaw(dataDir, 'usage/date=2026-01-04/rows.csv', `${HEADER}x,1,1,1\n`)
    const failure = String(await runAt(dataDir, AS_OF).catch((error: unknown) => error))
    expect(failure).toMatch(/Day 2026-01-04.*Day 2026-01-05/s)
    expect(failure).toMatch(
      /rows\.csv: 2 rows: prompt_tokens .*; first at row 4: (?=.{200}$)\{"ts":"2026-01-05T00:00:00Z".*"x1{99}.*\n.*: 1 row: app_id /m,
    )
  })
})
