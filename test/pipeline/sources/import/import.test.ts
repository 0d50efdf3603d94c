/**
 * CONTRACT 9: `import`: usage files go into the folders of their days, and count like files that were put there by
 * hand.
 */
import { spawnSync } from 'node:child_process'
import {
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { lastCompletedDay } from '../../../../pipeline/contract/calendar.ts'
import { until } from '../../../support/api.ts'
import { makeFolder } from '../../../support/folders.ts'
import { queryWarehouse, runAt } from '../../../support/pipeline/in-process.ts'
import { runCommand, withApps } from '../../../support/pipeline/nightly.ts'
import { REPOSITORY, startProcess } from '../../../support/processes.ts'

let dataDir = ''
let inbox = ''

beforeEach(() => {
  dataDir = withApps('One')
  inbox = makeFolder('in box')
})

function put(name: string, content: string | Uint8Array): string {
  const path = join(inbox, name)
  writeFileSync(path, content)
  return path
}

const HEADER = 'ts,app_id,prompt_tokens,completion_tokens,model'
const ROWS = [
  '2026-01-05T23:59:59Z,1,10,1,a/b',
  '2026-01-06T00:00:00Z,1,20,2,a/b',
  '2026-01-06T01:30:00+02:00,1,40,4,c/d',
]

const CSV = `${HEADER}\n${ROWS.join('\n')}\n`

describe('import', () => {
  it.each([
    ['UTC', ROWS],
    // A time without a zone is UTC, also after a time with an offset.
    [
      'zones',
      ['2026-01-05 23:30:00 -0500', '2026-01-05 23:30:00', '2026-01-05 23:30:00+02'].map(
        (ts) => `${ts},1,10,1,a`,
      ),
    ],
  ])('sorts the rows of a file by the UTC day of ts: %s', async (_, rows) => {
    const path = put('export.csv', `${HEADER}\n${rows.join('\n')}\n`)
    const ended = await runCommand(dataDir, 'import', path, '--json')
    expect(ended.code).toBe(0)
    const parts = [
      { day: '2026-01-05', rows: 2 },
      { day: '2026-01-06', rows: 1 },
    ]
    expect(JSON.parse(ended.stdout)).toMatchObject({ imported: [{ file: path, parts }] })
  })

  it('stores the same file once, whatever its name, with all its columns', async () => {
    await runCommand(dataDir, 'import', put('one.csv', CSV))
    const folder = join(dataDir, 'raw/usage/date=2026-01-05')
    const [name = '', ...others] = readdirSync(folder)
    expect(others).toEqual([])
    const { ino } = statSync(join(folder, name))
    for (const options of [['--dry-run'], []]) {
      const again = await runCommand(dataDir, 'import', put('two.csv', CSV), ...options)
      expect(again.stdout).toContain(', imported before')
    }
    expect(readdirSync(folder)).toEqual([name])
    expect(statSync(join(folder, name)).ino).toBe(ino)
    await runAt(dataDir, '2026-01-07T02:00:00Z')
    const models = 'SELECT DISTINCT model FROM usage_by_model JOIN models ON key = model_key ORDER BY model'
    expect(await queryWarehouse(dataDir, models)).toEqual([{ model: 'a/b' }, { model: 'c/d' }])
  })

  it('takes a bracket in the first name of CSV for no list', async () => {
    const { stdout } = await runCommand(dataDir, 'import', put('a.csv', `[n],${HEADER}\nx,${ROWS[0]}\n`))
    expect(stdout).toContain(': 1 row of 1 day imported')
  })

  it('reads a copy among the files of a source once', async () => {
    const copies = [put('export.csv', CSV), put('export (1).csv', CSV)]
    const { stdout } = await runCommand(dataDir, 'import', '--source', 'us', ...copies)
    expect(stdout).toContain(': 3 rows of 2 days imported')
  })

  it('takes the files of a folder, and names each by its path', async () => {
    const path = put('a.csv', CSV)
    put('.hidden.csv', 'x')
    const linked = join(makeFolder('elsewhere'), 'b.csv')
    writeFileSync(linked, `${HEADER}\n${ROWS[0]}\n`)
    symlinkSync(linked, join(inbox, 'b.csv'))
    const { stdout } = await runCommand(dataDir, 'import', inbox)
    expect(stdout).toContain(`${path}: 3 rows of 2 days imported`)
    expect(stdout).toContain(`${join(inbox, 'b.csv')}: 1 row of 1 day imported`)
    symlinkSync('nowhere', join(inbox, 'c.csv'))
    expect((await runCommand(dataDir, 'import', inbox)).stderr).toContain('c.csv does not exist')
  })

  it('leaves validation to the run: a broken value reaches the quarantine unchanged', async () => {
    const good = Array.from({ length: 200 }, () => '2026-01-05T01:00:00Z,1,1,1,a')
    // A row without an id is broken too, since the file has no names.
    const broken = ['2026-01-05T01:00:00Z,one,minus two,1,a', '2026-01-05T01:00:00Z,,1,1,a']
    await runCommand(dataDir, 'import', put('a.csv', `${HEADER}\n${[...good, ...broken].join('\n')}\n`))
    await runAt(dataDir, '2026-01-07T02:00:00Z')
    const rows = await queryWarehouse(dataDir, 'SELECT reason, payload FROM quarantine ORDER BY row')
    const reason = 'app_id is not an integer, 0 or more'
    expect(rows).toMatchObject([
      { reason, payload: expect.stringContaining('"prompt_tokens":"minus two"') },
      { reason },
    ])
  })

  it('reports the days that a run will skip', async () => {
    const yesterday = lastCompletedDay(new Date())
    const rows = ['2024-12-31', '2025-01-01', yesterday, '2999-01-01'].map(
      (day) => `${day}T00:00:00Z,1,1,1,a`,
    )
    const ended = await runCommand(dataDir, 'import', put('a.csv', `${HEADER}\n${rows.join('\n')}\n`))
    expect(ended.stdout).toMatch(/date=2024-12-31\S+: 1 row, before the first day of the dataset/)
    expect(ended.stdout).toMatch(/date=2025-01-01\S+: 1 row\n/)
    expect(ended.stdout).toMatch(new RegExp(`date=${yesterday}\\S+: 1 row\n`))
    expect(ended.stdout).toMatch(/date=2999-01-01\S+: 1 row, not over yet/)
  })

  it('reports the imported files before a file that cannot be read', async () => {
    const good = put('good.csv', `${HEADER}\n${ROWS[0]}\n`)
    const ended = await runCommand(dataDir, 'import', good, put('bad.csv', 'a,b\n1,2\n'), '--json')
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('bad.csv has no column')
    expect(JSON.parse(ended.stdout)).toMatchObject({ imported: [{ file: good }] })
  })

  it('writes under names that a run skips, and clears away files of a killed import', async () => {
    const path = put('export.csv', `${HEADER}\n${ROWS[0]}\n`)
    await runCommand(dataDir, 'import', path)
    const folder = join(dataDir, 'raw/usage/date=2026-01-05')
    const [name = ''] = readdirSync(folder)
    const killed = startProcess(process.execPath, ['--version'], { environment: {} })
    await killed.ended
    const left = join(folder, `.${name}-${killed.child.pid}-left`)
    renameSync(join(folder, name), left)
    utimesSync(left, 0, 0)
    const seen = new Set<string | null>()
    const watcher = watch(folder, (_, changed) => seen.add(changed))
    await runCommand(dataDir, 'import', path)
    // The system reports changes a little later, in their order.
    await until(() => seen.has(name))
    watcher.close()
    expect([...seen].filter((changed) => !changed?.startsWith('.'))).toEqual([name])
    expect(readdirSync(folder)).toEqual([name])
  })

  it('of one file twice at the same time stores it once, complete', async () => {
    const path = put('export.csv', `${HEADER}\n${`${ROWS[0]}\n`.repeat(10_000)}`)
    const importing = () => runCommand(dataDir, 'import', path)
    await Promise.all([importing(), importing()])
    expect(readdirSync(join(dataDir, 'raw/usage/date=2026-01-05'))).toHaveLength(1)
    const report = await runAt(dataDir, '2026-01-07T02:00:00Z')
    expect(report.not_published).toMatchObject({ rows_read: 10_000 })
  })

  it.each(['pipe', 'socket'])('reads standard input that is a %s, and names it', (kind) => {
    const path = put('export.csv', CSV)
    const nightly = [join(REPOSITORY, 'pipeline', 'nightly.ts'), 'import', '-']
    // Node gives its children sockets, a shell gives them pipes.
    const [command, args] =
      kind === 'socket'
        ? [process.execPath, nightly]
        : ['sh', ['-c', 'file=$1; shift; cat "$file" | "$@"', 'sh', path, process.execPath, ...nightly]]
    const ended = spawnSync(command, args, {
      input: kind === 'socket' ? readFileSync(path) : '',
      env: { ...process.env, DATA_DIR: dataDir },
      encoding: 'utf8',
    })
    expect(ended.stderr).toBe('')
    expect(ended.stdout).toContain('standard input: 3 rows of 2 days imported')
  })
})

describe('a rejected file', () => {
  const cases: readonly (readonly [string, string | Uint8Array, string])[] = [
    // None of these is a day that a folder can have as its name.
    ...[
      'infinity',
      '-infinity',
      '57970-01-01',
      '57970-01-01T00:00:00Z',
      '26-01-05 10:00',
      '0044-03-15 (BC)',
    ].map(
      (time) => ['a.csv', `${HEADER}\n${time},1,1,1,a\n`, `ts "${time}" is not a UTC timestamp`] as const,
    ),
    [
      'a.csv',
      `${HEADER}\n${ROWS[0]}\nyesterday,1,1,1,a\nwhenever,1,1,1,a\n`,
      'a.csv: 2 rows cannot be imported, the first is row 3: ts "yesterday"',
    ],
    [
      'a.csv',
      `${HEADER}\n${ROWS[0]},too,many\n`,
      'a.csv: 1 row cannot be imported, the first is row 2: broken line',
    ],
    [
      'a.ndjson',
      '{"ts":"2026-01-05T01:00:00Z","app_id":1,"prompt_tokens":1,"completion_tokens":1}\r\nError\r\n',
      'the first is row 2: not one JSON object',
    ],
    [
      'a.json',
      '[{"ts":"2026-01-05T01:00:00Z","app_id":1,"completion_tokens":1}]',
      'the first is row 1: the key prompt_tokens is missing',
    ],
    ['a.parquet', 'PARE....PARE', 'its first bytes are those of encrypted Parquet'],
    // As jq prints several.
    ['a.ndjson', '{\n  "a": 1\n}\n'.repeat(2), 'Write one object a line (jq -c .)'],
    // pandas and R write the numbers of the rows under an empty name.
    ['a.csv', ',ts,app\n0,2026-01-05,One\n', 'a.csv has no column prompt_tokens, completion_tokens'],
  ]

  it.each(cases)('%s with %j is not imported at all', async (name, content, message) => {
    const ended = await runCommand(dataDir, 'import', put(name, content))
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain(message)
    expect(readdirSync(join(dataDir, 'raw'))).toEqual(['apps'])
  })

  it('may be missing or none, or not given at all: wrong usage, before anything is imported', async () => {
    const good = put('good.csv', CSV)
    const nothing = join(inbox, 'nothing.csv')
    const pipe = join(inbox, 'pipe.csv')
    spawnSync('mkfifo', [pipe])
    const wrong = [
      [[good, nothing], `${nothing} does not exist\n`],
      [[good, pipe], `${pipe} is not a file: lead it to standard input, and write - for FILE\n`],
      [[], 'Expected FILE...'],
    ] as const
    for (const [files, message] of wrong) {
      const ended = await runCommand(dataDir, 'import', ...files)
      expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(message) })
    }
    expect(readdirSync(join(dataDir, 'raw'))).toEqual(['apps'])
  })
})
