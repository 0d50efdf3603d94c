/** CONTRACT 7: rejected rows are kept with file, row and reason, in every text format and for every fault. */
import { gzipSync } from 'node:zlib'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, queryCurrent, writeRaw } from '../../support/pipeline/nightly.ts'

const REGISTRY = 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n'
const HEADER = 'ts,app_id,prompt_tokens,completion_tokens\n'
const DAY = '2026-01-05'
const AS_OF = '2026-01-10T02:00:00Z'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** Enough valid rows that a few broken ones stay below 1 %. */
function goodCsv(rows: number): string {
  return `${DAY}T00:00:00Z,1,1,1\n`.repeat(rows)
}

function folder(): string {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  return dataDir
}

describe('quarantine', () => {
  const dataDir = folder()

  beforeAll(async () => {
    writeRaw(dataDir, `usage/date=${DAY}/filler.csv`, HEADER + goodCsv(2000))
    writeRaw(
      dataDir,
      `usage/date=${DAY}/lines.csv.gz`,
      gzipSync(
        [
          `\uFEFF${HEADER.trim()}`,
          `${DAY}T00:00:00Z,1,1,1`,
          `${DAY}T00:00:00Z,1,1`,
          `"${DAY}T00:00:00Z","1","1","1"`,
          `${DAY}T00:00:00Z,1,1,-1`,
          'a,b,c,d,e',
          `${DAY}T00:00:00Z,1,-1,1`,
        ].join('\r\n'),
      ),
    )
    writeRaw(
      dataDir,
      `usage/date=${DAY}/more-lines.csv`,
      `${HEADER}${DAY}T00:00:00Z,1,1\n${DAY}T00:00:00Z,1,-1,1\n${DAY}T00:00:00Z,1,1,${10n ** 27n}\n`,
    )
    writeRaw(
      dataDir,
      `usage/date=${DAY}/lines.ndjson`,
      [
        `{"ts":"${DAY}T00:00:00Z","app_id":1,"prompt_tokens":1,"completion_tokens":1}`,
        '',
        'not json',
        '[1,2]',
        `{"ts":"${DAY}T00:00:00Z","app_id":1,"prompt":1,"completion_tokens":1}`,
        `{"ts":"${DAY}T00:00:00Z","app_id":1,"prompt_tokens":null,"completion_tokens":1}`,
        `{"ts":"${DAY}T00:00:00Z","app_id":1,"prompt_tokens":1.5,"completion_tokens":1}`,
        `{"ts":"2026-01-06T00:00:00Z","app_id":1,"prompt_tokens":1,"completion_tokens":1}`,
        `{"ts":"${DAY}T00:00:00Z","app_id":1,"prompt_tokens":1,"completion_tokens":1,"requests":-1}`,
        `{"ts":"${DAY}T00:00:00Z","app_`,
      ].join('\n'),
    )
    await runAt(dataDir, AS_OF)
  })

  it('names file, line and reason of broken CSV lines, header and broken lines counted', async () => {
    expect(await rowsOf('lines.csv.gz')).toEqual([
      ['3', 'broken line: 3 fields instead of 4', '1'],
      ['5', 'completion_tokens is not an integer, 0 or more', '1'],
      ['6', 'broken line: 5 fields instead of 4', '1'],
      ['7', 'prompt_tokens is not an integer, 0 or more', '1'],
    ])
    expect(await rowsOf('more-lines.csv')).toEqual([
      ['2', 'broken line: 3 fields instead of 4', '1'],
      ['3', 'prompt_tokens is not an integer, 0 or more', '1'],
      ['4', 'completion_tokens is not an integer, 0 or more', '1'],
    ])
  })

  it('names line and reason in NDJSON, blank lines counted', async () => {
    expect(await rowsOf('lines.ndjson')).toEqual([
      ['3', 'not a JSON object', '1'],
      ['4', 'not a JSON object', '1'],
      ['5', 'the key prompt_tokens is missing', '1'],
      ['6', 'prompt_tokens is not an integer, 0 or more', '1'],
      ['7', 'prompt_tokens is not an integer, 0 or more', '1'],
      ['8', 'ts is not on the day of its folder', '1'],
      ['9', 'requests is not an integer from 0 to 10^12', '1'],
      ['10', 'not a JSON object', '1'],
    ])
  })

  it('keeps the bytes of a broken line', async () => {
    const [torn] = await queryWarehouse(dataDir, 'SELECT payload FROM quarantine WHERE row = 10')
    expect(torn).toEqual({ payload: `{"ts":"${DAY}T00:00:00Z","app_` })
  })

  it('marks the day as partial and publishes the valid rows', async () => {
    expect(await queryCurrent(dataDir, `SELECT * FROM coverage WHERE day = '${DAY}'`)).toEqual([
      { day: DAY, status: 'partial', total_requests: '2003', total_tokens: '4006' },
    ])
  })

  async function rowsOf(name: string): Promise<unknown[]> {
    const rows = await queryWarehouse(
      dataDir,
      `SELECT row, reason, rows FROM quarantine WHERE file = 'usage/date=${DAY}/${name}' ORDER BY quarantine.row`,
    )
    return rows.map(({ row, reason, rows: lines }) => [row, reason, lines])
  }
})

describe('a long line', () => {
  /** A line of this many bytes, without its end. */
  const line = { csv: csvLine, ndjson: ndjsonLine }
  const formats = ['csv', 'ndjson'] as const

  it('is counted like any other, up to 10 MB', async () => {
    const dataDir = folder()
    const lengths = [100, 1_999_999, 2_000_000, 100, 9_900_000, 100]
    for (const format of formats) writeRaw(dataDir, `usage/date=${DAY}/long.${format}`, text(format, lengths))
    await runAt(dataDir, AS_OF)
    expect(await queryWarehouse(dataDir, 'SELECT rows_read, rows_rejected FROM days')).toEqual([
      { rows_read: '12', rows_rejected: '0' },
    ])
  })

  it('that DuckDB would skip fails the run and is named', async () => {
    const dataDir = folder()
    const name = (format: string) => `usage/date=2026-01-0${format.length}/long.${format}`
    for (const format of formats) writeRaw(dataDir, name(format), text(format, [100, 40_000_000, 100]))
    const failure = String(await runAt(dataDir, AS_OF).catch((error: unknown) => error))
    for (const format of formats) {
      expect(failure).toContain(`${name(format)} cannot be read: it has a line of more than 10 MB`)
    }
  })

  function text(format: 'csv' | 'ndjson', lengths: readonly number[]): string {
    const lines = lengths.map((length) => `${line[format](length)}\n`)
    return (format === 'csv' ? HEADER.replace('\n', ',note\n') : '') + lines.join('')
  }

  function csvLine(length: number): string {
    return `${DAY}T00:00:00Z,1,1,1,`.padEnd(length, 'x')
  }

  function ndjsonLine(length: number): string {
    const start = `{"ts":"${DAY}T00:00:00Z","app_id":1,"prompt_tokens":1,"completion_tokens":1,"note":"`
    return `${start.padEnd(length - 2, 'x')}"}`
  }
})

describe('the line ends of NDJSON', () => {
  const good = `{"ts":"${DAY}T00:00:00Z","app_id":1,"prompt_tokens":1,"completion_tokens":1}`

  it('may be of both kinds in any order, and rows have their true numbers', async () => {
    const dataDir = folder()
    writeRaw(dataDir, `usage/date=${DAY}/filler.csv`, HEADER + goodCsv(2000))
    const lines = [good, good, 'not json', '', 'not json', good]
    for (const [index, ends] of [
      ['\n', '\r\n', '\r\n'],
      ['\r\n', '\n', '\n'],
    ].entries()) {
      const text = lines.map((line, at) => line + ends[at % ends.length]).join('')
      writeRaw(dataDir, `usage/date=${DAY}/mixed-${index}.ndjson`, text)
    }
    await runAt(dataDir, AS_OF)
    expect(await queryWarehouse(dataDir, 'SELECT q.row FROM quarantine AS q ORDER BY q.file, q.row')).toEqual(
      ['3', '5', '3', '5'].map((row) => ({ row })),
    )
    expect(await queryWarehouse(dataDir, 'SELECT rows_read FROM days')).toEqual([{ rows_read: '2010' }])
  })
})

describe('line breaks inside of quotes', () => {
  it('begin no rows in a large file, even if the text after them looks like rows', async () => {
    const dataDir = folder()
    const headers = [
      `${HEADER.trim()},note`,
      `\uFEFF"${HEADER.trim().replaceAll(',', '","')}","note, if ""any"""`,
      // After a misplaced quote.
      `${HEADER.trim()},note\n${DAY}T00:00:00Z,1,0,0,5" or so`,
    ]
    // Enough for several threads, so that one starts inside a text.
    const note = `"${`\n${DAY}T00:00:00Z,9,9,9,z`.repeat(30_000)}"`
    const rows = `${DAY}T00:00:00Z,1,1,1,${note}\n`.repeat(20)
    for (const [index, header] of headers.entries())
      writeRaw(dataDir, `usage/date=${DAY}/notes-${index}.csv`, `${header}\n${rows}`)
    await runAt(dataDir, AS_OF)
    expect(await queryWarehouse(dataDir, 'SELECT app_id, prompt_tokens FROM usage_daily')).toEqual([
      { app_id: '1', prompt_tokens: '60' },
    ])
  })
})

describe('the limit of 1 %', () => {
  it('allows exactly 1 %', async () => {
    const dataDir = folder()
    writeRaw(dataDir, `usage/date=${DAY}/rows.csv`, `${HEADER}${goodCsv(99)}${DAY}T00:00:00Z,1,x,1\n`)
    const report = await runAt(dataDir, AS_OF)
    expect(report.outcome).toBe('published')
    expect(fact(report, 'load', 'rows_rejected')).toBe(1)
    expect(fact(report, 'load', 'reject_reasons')).toEqual([
      { reason: 'prompt_tokens is not an integer, 0 or more', rows: 1 },
    ])
  })

  it('if exceeded fails the run, which names the file and keeps snapshot and quarantine', async () => {
    const dataDir = folder()
    writeRaw(dataDir, `usage/date=2026-01-04/rows.csv`, `${HEADER}2026-01-04T00:00:00Z,1,1,1\n`)
    await runAt(dataDir, AS_OF)
    writeRaw(dataDir, `usage/date=${DAY}/rows.csv`, `${HEADER}${goodCsv(98)}${DAY}T00:00:00Z,1,x,1\n`)
    await expect(runAt(dataDir, '2026-01-11T01:00:00Z')).rejects.toThrow('1 of 99 rows')
    await expect(runAt(dataDir, '2026-01-11T02:00:00Z')).rejects.toThrow(
      /Day 2026-01-05: 1 of 99 rows are rejected, more than 1 %.*usage\/date=2026-01-05\/rows.csv: 1 row: prompt_tokens/s,
    )
    expect(await queryWarehouse(dataDir, 'SELECT count(*) AS n FROM quarantine')).toEqual([{ n: '1' }])
    expect(await queryCurrent(dataDir, 'SELECT max(day) AS day FROM app_daily')).toEqual([
      { day: '2026-01-04' },
    ])
  })

  it('is reported for all broken days together: most common violation first, with its first row, cut short', async () => {
    const dataDir = folder()
    const rows = ['x,1', '1,x' + '1'.repeat(300), '1,xsecond'].map(
      (values) => `${DAY}T00:00:00Z,${values},1\n`,
    )
    writeRaw(dataDir, `usage/date=${DAY}/rows.csv`, HEADER + goodCsv(1) + rows.join(''))
    writeRaw(dataDir, 'usage/date=2026-01-04/rows.csv', `${HEADER}x,1,1,1\n`)
    const failure = String(await runAt(dataDir, AS_OF).catch((error: unknown) => error))
    expect(failure).toMatch(/Day 2026-01-04.*Day 2026-01-05/s)
    expect(failure).toMatch(
      /rows\.csv: 2 rows: prompt_tokens .*; first at row 4: (?=.{200}$)\{"ts":"2026-01-05T00:00:00Z".*"x1{99}.*\n.*: 1 row: app_id /m,
    )
  })

  it('is forgotten once the files of the day are gone', async () => {
    const dataDir = folder()
    writeRaw(dataDir, `usage/date=2026-01-04/rows.csv`, `${HEADER}2026-01-04T00:00:00Z,1,1,1\n`)
    writeRaw(dataDir, `usage/date=${DAY}/rows.csv`, `${HEADER}x,1,1,1\n`)
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(`Day ${DAY}`)
    rmSync(join(dataDir, 'raw', 'usage', `date=${DAY}`), { recursive: true })
    const report = await runAt(dataDir, AS_OF)
    expect(fact(report, 'load', 'reject_reasons')).toEqual([])
    expect(await queryWarehouse(dataDir, 'SELECT count(*) AS n FROM quarantine')).toEqual([{ n: '0' }])
  })
})

describe('names in the drop folder', () => {
  it('a file of an unknown kind fails the run', async () => {
    const dataDir = folder()
    writeRaw(dataDir, `usage/date=${DAY}/rows.xlsx`, 'x')
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(
      'rows.xlsx is not a readable file. Expected .parquet, .arrow',
    )
  })

  it('a folder without a valid day fails the run', async () => {
    const dataDir = folder()
    writeRaw(dataDir, 'usage/date=2026-02-30/rows.csv', HEADER)
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(
      'usage/date=2026-02-30 is not a day: expected a folder date=YYYY-MM-DD. Move it away or rename it; ' +
        'npm run nightly -- import FILE sorts',
    )
  })

  it('names that begin with a dot or an underscore are skipped', async () => {
    const dataDir = folder()
    writeRaw(dataDir, `usage/date=${DAY}/rows.csv`, HEADER + goodCsv(1))
    writeRaw(dataDir, `usage/date=${DAY}/_SUCCESS`, '')
    writeRaw(dataDir, `usage/date=${DAY}/.rows.csv.part`, 'half')
    expect((await runAt(dataDir, AS_OF)).outcome).toBe('published')
  })
})
