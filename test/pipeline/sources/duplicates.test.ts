/**
 * CONTRACT 7: repeated request_ids: each one is found, wherever the other is; contradicting rows of one request block
 * a run.
 */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { BlockedError } from '../../../pipeline/errors.ts'
import { fact, runAt } from '../../support/pipeline/in-process.ts'
import {
  deliver,
  queryCurrent,
  runCommand,
  writeParquet,
  writeRaw,
  withApps,
} from '../../support/pipeline/nightly.ts'
import { FORMATS, rawFile } from '../../support/pipeline/raw-files.ts'

const ROWS = 300_000
const DAY = '2026-01-05'

/** A day with unique request_ids, except that every `step`-th repeats a distant one. */
async function runOver(step: number) {
  const dataDir = withApps('One', 'Two')
  await writeParquet(
    join(dataDir, 'raw', 'usage', `date=${DAY}`, 'rows.parquet'),
    `SELECT TIMESTAMP '${DAY}' AS ts, 1 AS app_id, 1 AS prompt_tokens, 0 AS completion_tokens,
       'id-' || CASE WHEN i % ${step} = 0 THEN (i + ${ROWS / 2}) % ${ROWS} + 1 ELSE i END AS request_id
     FROM range(${ROWS}) AS t (i)`,
    20_000,
  )
  const report = await runAt(dataDir, '2026-01-06T02:00:00Z')
  const [total] = await queryCurrent(dataDir, 'SELECT sum(requests) AS requests FROM app_daily')
  return { duplicates: fact(report, 'load', 'rows_duplicate'), requests: Number(total?.['requests']) }
}

it.each([
  [1, ROWS * 2],
  [6, 50_000],
  [ROWS / 4, 4],
])('%i repeated request_ids are subtracted', async (duplicates, step) => {
  expect(await runOver(step)).toEqual({ duplicates, requests: ROWS - duplicates })
})

it('an unknown count ranks below 0, and a duplicate without tokens reduces their number', async () => {
  const dataDir = withApps('One', 'Two')
  const rows = ['a,,,5', 'a,0,0,1', 'b,,,1', 'b,,,2'].map((row) => `${DAY},1,${row}`)
  writeRaw(
    dataDir,
    `usage/date=${DAY}/rows.csv`,
    `ts,app_id,request_id,prompt_tokens,completion_tokens,requests\n${rows.join('\n')}\n`,
  )
  const report = await runAt(dataDir, '2026-01-06T02:00:00Z')
  expect(await queryCurrent(dataDir, 'SELECT requests FROM app_daily')).toEqual([{ requests: '3' }])
  expect(fact(report, 'load', 'rows_duplicate')).toBe(2)
  expect(fact(report, 'load', 'rows_without_tokens')).toBe(1)
})

it('a request_id counts once in every format, also by lines, and as integer and floating-point number', async () => {
  const dataDir = withApps('One', 'Two')
  const columns = (ts: string, ids: readonly (number | bigint)[] = [1, 2]) =>
    [
      [ts, [DAY, DAY]],
      ['app_id', [1n, 1n]],
      ['request_id', ids],
      ['prompt_tokens', [5n, 5n]],
      ['completion_tokens', [1n, 1n]],
    ] as const
  for (const format of FORMATS) {
    writeRaw(dataDir, `usage/date=${DAY}/rows.${format}`, rawFile(format, columns('ts')))
    writeRaw(dataDir, `usage/date=${DAY}/integers.${format}`, rawFile(format, columns('ts', [2n, 1n])))
  }
  writeRaw(dataDir, `usage/date=${DAY}/capitals.ndjson`, rawFile('ndjson', columns('TS')))
  await runAt(dataDir, '2026-01-06T02:00:00Z')
  expect(await queryCurrent(dataDir, 'SELECT requests FROM app_daily')).toEqual([{ requests: '2' }])
})

/** A day of 2000 requests in one file, and repeated rows in another. */
function writeDay(dataDir: string, day: string, again: readonly string[]): void {
  const header = 'ts,app_id,prompt_tokens,completion_tokens,request_id\n'
  const rows = Array.from({ length: 2000 }, (_, index) => `${day}T10:00:00Z,1,10,1,r${index}\n`)
  writeRaw(dataDir, `usage/date=${day}/a.csv`, header + rows.join(''))
  writeRaw(dataDir, `usage/date=${day}/b.csv`, header + again.map((row) => `${day}T${row}\n`).join(''))
}

it('a redelivery is no conflict, and up to one conflict in a thousand rows is only reported', async () => {
  const dataDir = withApps('One', 'Two')
  writeDay(dataDir, '2026-01-04', [])
  await runAt(dataDir, '2026-01-05T02:00:00Z')
  // A later row, or one with other descriptive values, is the same request.
  writeDay(dataDir, '2026-01-05', [
    '10:00:00Z,1,10,1,r0',
    '11:00:00Z,1,10,1,r1',
    '10:00:00Z,1,12,1,r2',
    '10:00:00Z,2,10,1,r3',
  ])
  const report = await runAt(dataDir, '2026-01-06T02:00:00Z')
  expect(fact(report, 'load', 'rows_duplicate')).toBe(4)
  expect(fact(report, 'load', 'rows_conflicting')).toBe(2)
  expect(fact(report, 'gate', 'accepted')).toEqual([])
})

it('more conflicts block the run until they are corrected or accepted', async () => {
  const dataDir = withApps('One', 'Two')
  writeDay(dataDir, '2026-01-05', [])
  await runAt(dataDir, '2026-01-06T02:00:00Z')
  const contradicting = ['r0', 'r1', 'r2'].map((id) => `10:00:00Z,1,12,1,${id}`)
  writeDay(dataDir, '2026-01-06', contradicting)
  const blocked = runAt(dataDir, '2026-01-07T02:00:00Z')
  await expect(blocked).rejects.toThrow(BlockedError)
  await expect(blocked).rejects.toThrow(/conflicts: 2026-01-06: 3 of 2003 rows share a request_id/)
  // The next run, over unchanged files, is blocked too.
  await expect(runAt(dataDir, '2026-01-07T03:00:00Z')).rejects.toThrow(BlockedError)
  await runAt(dataDir, '2026-01-07T04:00:00Z', { accepted: ['conflicts'] })
  expect(await queryCurrent(dataDir, 'SELECT count(*) AS days FROM app_daily')).toEqual([{ days: '2' }])
})

it('a day with many tokens of unknown apps gives a warning', async () => {
  const dataDir = withApps('One', 'Two')
  deliver(dataDir, '2026-01-05', ['1,90,0', '0,4,0', '77,6,0'])
  const ended = await runCommand(dataDir, 'run', '--as-of', '2026-01-06T02:00:00Z')
  expect(ended.stderr).toContain('2026-01-05: 10 of 100 tokens name no app, or one that is not registered')
  const again = await runCommand(dataDir, 'run', '--as-of', '2026-01-07T02:00:00Z')
  expect(again.stderr).not.toContain('name no app')
})
