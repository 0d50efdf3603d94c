/** CONTRACT 7: apps by an address or a name, in usage and in the registry; one id each, whichever source comes first. */
import { DuckDBConnection } from '@duckdb/node-api'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { appIdOf } from '../../../pipeline/contract/app-identity.ts'
import { makeFolder } from '../../support/folders.ts'
import { queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { deliver, queryCurrent, register, writeParquet, writeRaw } from '../../support/pipeline/nightly.ts'
import { FORMATS, rawFile, type RawFormat } from '../../support/pipeline/raw-files.ts'

const FIRST_RUN = '2026-11-18T02:00:00Z'
const SECOND_RUN = '2026-11-19T02:00:00Z'
const DAY = '2026-11-17'
const CLINE = appIdOf('local:cline')

let dataDir = ''
beforeEach(() => {
  dataDir = makeFolder()
})

/** Writes a CSV file of usage from rows of app, prompt_tokens and completion_tokens. */
function writeUsage(rows: readonly string[], name = 'a.csv'): void {
  const lines = rows.map((row) => `${DAY}T10:00:00Z,${row}\n`)
  writeRaw(dataDir, `usage/date=${DAY}/${name}`, `ts,app,prompt_tokens,completion_tokens\n${lines.join('')}`)
}

/** The public apps with usage, as texts of id, name and tokens. */
async function published(): Promise<string[]> {
  const rows = await queryCurrent(
    dataDir,
    `SELECT app_id, app_name, sum(prompt_tokens) AS tokens FROM app_daily JOIN apps USING (app_id)
     GROUP BY ALL ORDER BY app_id`,
  )
  return rows.map((row) => Object.values(row).join(' '))
}

const byName = () => readFileSync(join(dataDir, 'raw', 'apps', 'by-name.ndjson'), 'utf8')

it('usage that names its apps is published under ids that follow from the names, with the first spelling', async () => {
  writeUsage(['Cline,1,0', 'cline,10,0', 'https://www.app.example/,100,0', ',1000,0'])
  const row = (facts: object) => JSON.stringify({ ts: `${DAY}T11:00:00Z`, completion_tokens: 0, ...facts })
  const rows = [row({ app: 'http://app.example', prompt_tokens: 5 }), row({ app: null, prompt_tokens: 5000 })]
  writeRaw(dataDir, `usage/date=${DAY}/b.ndjson`, rows.join('\n'))
  await runAt(dataDir, FIRST_RUN)
  expect(await published()).toEqual([`${CLINE} Cline 11`, `${appIdOf('app.example')} app.example 105`])

  const first = byName()
  await runAt(dataDir, SECOND_RUN)
  expect(byName()).toBe(first)
  // The lost rows are made again, with the same ids.
  rmSync(join(dataDir, 'warehouse.duckdb'))
  rmSync(join(dataDir, 'raw', 'apps'), { recursive: true })
  await runAt(dataDir, '2026-11-20T02:00:00Z')
  expect(byName().match(/"app_id":\d+/g)).toEqual(first.match(/"app_id":\d+/g))
})

it('a night with apps named by usage reads the registry once', async () => {
  const row =
    "SELECT 1 AS app_id, 'One' AS app_name, 'public' AS visibility, [] AS subcategories, TIMESTAMP '2025-01-01' AS updated_at"
  await writeParquet(join(dataDir, 'raw/apps/registry.parquet'), row)
  writeUsage(['Cline,1,0', 'One,10,0'])
  const run = vi.spyOn(DuckDBConnection.prototype, 'run')
  await runAt(dataDir, FIRST_RUN)
  const reads = run.mock.calls.filter(([sql]) => /read_parquet\([^)]*registry\.parquet/.test(sql))
  run.mockRestore()
  expect(reads).toHaveLength(1)
  expect(await published()).toEqual(['1 One 10', `${CLINE} Cline 1`])
})

it('an id follows from host and path of an address, or from the name, the same everywhere; other texts name no app', async () => {
  const named = {
    'Claude Code': ['local:claude code', 'Claude Code'],
    '  claude\u00A0 code ': ['local:claude code', 'Claude Code'],
    'app.example': ['local:app.example', 'app.example'],
    'https://www.App.example/': ['app.example', 'app.example'],
    'http://app.example/tool?token=1': ['app.example/tool', 'app.example'],
  }
  const nobody = ['  ', '\u202E\u200B', 'http://localhost:3000', 'https://192.168.0.7/app']
  writeUsage([...Object.keys(named), ...nobody].map((app) => `${app},1,0`))
  await runAt(dataDir, FIRST_RUN)
  const rows = byName().trimEnd().split('\n')
  const found = rows.map((row) =>
    z.object({ referer: z.string(), app_name: z.string() }).parse(JSON.parse(row)),
  )
  expect(new Set(found.map((row) => Object.values(row).join()))).toEqual(
    new Set(Object.values(named).map((each) => each.join())),
  )
  // Published data contains these ids.
  expect(byName()).toContain('"app_id":1527876024117272,"app_name":"app.example"')
})

it('usage that names its apps is not published if NEW_APPS is hidden', async () => {
  register(dataDir, ['1,One,public,,,2025-01-01'])
  writeUsage(['Cline,1,0'])
  await runAt(dataDir, FIRST_RUN, { settings: { NEW_APPS: 'hidden' } })
  expect(await published()).toEqual([])
  expect(byName()).toContain('"visibility":"hidden"')
})

it('ids and names may be mixed, and an id takes precedence over a name', async () => {
  register(dataDir, ['1,One,public,,,2025-01-01'])
  writeRaw(
    dataDir,
    `usage/date=${DAY}/a.csv`,
    `ts,app_id,app,prompt_tokens,completion_tokens\n${DAY},1,Cline,1,0\n${DAY},,Cline,10,0\n`,
  )
  deliver(dataDir, DAY, ['1,100,0'], 'b.csv')
  await runAt(dataDir, FIRST_RUN)
  expect(await published()).toEqual(['1 One 101', `${CLINE} Cline 10`])
})

/** Registries whose rows and aliases give names or addresses, usage, and what is published. */
const REGISTRIES: readonly (readonly [string, readonly string[], readonly string[], readonly string[]])[] = [
  [
    // A name of two apps is ambiguous.
    'usage counts for the registered app with this name or address',
    ['1,,Cline,,public', '2,https://app.example,Two,,public', '3,,Twin,,public', '4,,twin,,public'],
    ['CLINE,1,0', 'https://app.example/,10,0', 'twin,100,0'],
    ['1 Cline 1', '2 Two 10', `${appIdOf('local:twin')} twin 100`],
  ],
  [
    'spaces, letter cases and invisible characters of a name do not count',
    ['1,,Cafe\u0301  Bot,,public', '2,,\u039F\u0394\u039F\u03A3,,public', '3,,\u0130z\u200B,,public'],
    ['caf\u00E9 bot,1,0', '\u039F\u0394\u039F\u03A3,10,0', '\uFEFF\u0130Z,100,0'],
    ['1 Cafe\u0301  Bot 1', '2 \u039F\u0394\u039F\u03A3 10', '3 \u0130z\u200B 100'],
  ],
  [
    'a registry row may name an app that another row gives an id',
    [
      '1,,Cline,,public',
      '2,https://two.example,Two,,public',
      ',CLINE,Cline 2,,public',
      ',http://www.two.example/,,,hidden',
    ],
    ['Cline,1,0', 'https://two.example,10,0'],
    ['1 Cline 2 1'],
  ],
  [
    'an alias may name its canonical app',
    [
      '1,,One,,public',
      '2,https://two.example,Two,,public',
      '3,,Three,one,public',
      ',Four,Four,https://two.example/,public',
      ',Five,Five,,public',
      '6,,Six,five,public',
    ],
    ['Three,1,0', 'four,10,0', 'six,100,0'],
    ['1 One 1', '2 Two 10', `${appIdOf('local:five')} Five 100`],
  ],
  [
    'a registry row with a name instead of an id concerns the app of that name',
    [',Cline,Cline for all,,public', ',https://b.example,B,cline,public', ',https://c.example,,,hidden'],
    ['cline,1,0', 'https://b.example,10,0', 'https://c.example,100,0'],
    [`${CLINE} Cline for all 11`],
  ],
]

it.each(REGISTRIES)('%s', async (_promise, registry, usage, expected) => {
  const rows = registry.map((row, index) => `${row},2025-01-0${index + 1}\n`)
  const header = 'app_id,app,app_name,alias_of,visibility,updated_at\n'
  writeRaw(dataDir, 'apps/registry.csv', header + rows.join(''))
  writeUsage(usage)
  await runAt(dataDir, FIRST_RUN)
  expect(await published()).toEqual(expected)
})

it('rows with an empty column app name no app, in a file of any format without names', async () => {
  register(dataDir, ['1,One,public,,,2025-01-01'])
  for (const [index, format] of FORMATS.entries()) {
    const day = `2026-11-1${index + 1}`
    deliver(dataDir, day, ['1,1,0'], 'a.csv')
    const columns = [
      ['ts', [`${day}T10:00:00Z`, `${day}T11:00:00Z`]],
      ['app', ['', '']],
      ['prompt_tokens', [5n, 5n]],
      ['completion_tokens', [0n, 0n]],
    ] as const
    writeRaw(dataDir, `usage/date=${day}/b.${format}`, rawFile(format, columns))
  }
  const nulls = '{"ts":"2026-11-15","app":null,"prompt_tokens":5,"completion_tokens":0}\n'
  writeRaw(dataDir, 'usage/date=2026-11-15/b.ndjson', `${nulls}${nulls.replace('"app"', '"APP"')}`)
  const empty = 'ts,app,prompt_tokens,completion_tokens\n2026-11-16,,5,0\n2026-11-16,"",5,0\n'
  writeRaw(dataDir, 'usage/date=2026-11-16/b.csv', empty)
  await runAt(dataDir, FIRST_RUN)
  const unnamed = 'SELECT day, requests FROM usage_daily WHERE app_id = 0 ORDER BY day'
  expect((await queryWarehouse(dataDir, unnamed)).map(({ requests }) => requests)).toEqual(
    Array(FORMATS.length + 2).fill('2'),
  )
})

/** Writes usage as the chat route records it, a second apart. */
function writeRecords(day: string, ...records: readonly Readonly<Record<string, unknown>>[]): void {
  const usual = { account_id: 'a', requests: 1, prompt_tokens: 1, completion_tokens: 0 }
  const lines = records.map((record, second) => {
    const ts = `${day}T10:00:${String(second).padStart(2, '0')}Z`
    return `${JSON.stringify({ ts, ...usual, ...record })}\n`
  })
  writeRaw(dataDir, `usage/date=${day}/chat.ndjson`, lines.join(''))
}
async function apps(): Promise<string[]> {
  const rows = await queryCurrent(dataDir, 'SELECT app_name, subcategories FROM apps ORDER BY app_name')
  return rows.map((row) => Object.values(row).join(' '))
}

describe('an app that usage names first', () => {
  it('gets title and tags from the account that named it first, once a request was served, and from no other', async () => {
    const app = 'https://a.example'
    writeRecords(
      DAY,
      { app, requests: 0, account_id: 'b', app_title: 'Never served', app_categories: 'game' },
      { app },
      { app: 'http://a.example/', app_title: '  Our\tApp ', app_categories: 'Cli-Agent, chess,video-gen' },
      { app, app_title: 'Later', app_categories: 'legal' },
      { app, account_id: 'b', app_title: 'Theirs', app_categories: 'roleplay,game' },
      { app: 'Named', app_title: 'Another name', app_categories: ['image-gen'] },
      { app: 'Not served', requests: 0 },
    )
    await runAt(dataDir, FIRST_RUN)
    const expected = ['Named [image-gen]', 'Our App [cli-agent, video-gen]']
    expect(await apps()).toEqual(expected)
    writeRecords('2026-11-18', { app, app_title: 'Later', app_categories: 'legal' })
    await runAt(dataDir, SECOND_RUN)
    expect(await apps()).toEqual(expected)
  })

  it.each<RawFormat>(['csv', 'parquet', 'arrow'])('gets its title and tags from %s too', async (format) => {
    const columns = [
      ['ts', [`${DAY}T10:00:00Z`]],
      ['app', ['https://a.example']],
      ['app_title', ['Ours']],
      ['app_categories', ['cli-agent,game']],
      ['prompt_tokens', [1n]],
      ['completion_tokens', [0n]],
    ] as const
    writeRaw(dataDir, `usage/date=${DAY}/a.${format}`, rawFile(format, columns))
    await runAt(dataDir, FIRST_RUN)
    expect(await apps()).toEqual(['Ours [cli-agent, game]'])
  })

  it('is one of at most NEW_APPS_PER_ACCOUNT of its account and day; others rank nobody until another day', async () => {
    const run = async (time: string) => {
      const { notes } = await runAt(dataDir, time, { settings: { NEW_APPS_PER_ACCOUNT: '2' } })
      return notes.filter((note) => note.includes('NEW_APPS_PER_ACCOUNT'))
    }
    const junk = ['A', 'B', 'C', 'D'].map((app) => ({ app, account_id: 'greedy' }))
    writeRecords(DAY, ...junk, { app: 'Honest', account_id: 'other' })
    writeUsage(['E,1,0', 'F,1,0', 'G,1,0'], 'ours.csv')
    expect(await run(FIRST_RUN)).toEqual([
      expect.stringContaining(`${DAY}: account greedy named 2 new apps beyond the 2`),
    ])
    const names = async () => (await apps()).map((app) => app.split(' ', 1)[0]).join(' ')
    expect(await names()).toBe('A B E F G Honest')
    // The same day counted again has no further place; another day has.
    writeRecords(DAY, ...junk, { app: 'Honest', account_id: 'other' }, { app: 'A' })
    expect(await run('2026-11-18T03:00:00Z')).toHaveLength(1)
    writeRecords('2026-11-18', { app: 'D', account_id: 'greedy' })
    expect(await run(SECOND_RUN)).toEqual([])
    expect(await names()).toBe('A B D E F G Honest')
  })

  it('stays as an operator decided, even if the clocks date its registration later', async () => {
    const id = appIdOf('a.example')
    const row = (facts: object) => JSON.stringify({ app_id: id, subcategories: [], alias_of: null, ...facts })
    writeRecords(DAY, { app: 'https://a.example' }, { app: 'Other' })
    const decision = { app_name: 'Ours', visibility: 'hidden', updated_at: '2026-11-16T03:00:00Z' }
    writeRaw(dataDir, 'apps/decision-1.ndjson', row(decision))
    // An app that requests registered, in the file of an earlier version.
    const registered = { updated_at: '2026-11-17T12:00:00.002Z', registered_at: '2026-11-17T12:00:00.000Z' }
    const theirs = { app_name: 'Theirs', visibility: 'public', referer: 'a.example', revision: 2 }
    writeRaw(dataDir, 'apps/chat.ndjson', row({ ...theirs, ...registered }))
    await runAt(dataDir, FIRST_RUN)
    expect(await apps()).toEqual(['Other []'])
  })
})
