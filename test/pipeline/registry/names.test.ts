/** CONTRACT 7: apps by an address or a name, in usage and in the registry; one id each, whichever source comes first. */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { readConfig } from '../../../pipeline/config.ts'
import { appIdOf } from '../../../pipeline/contract/app-identity.ts'
import { runNightly } from '../../../pipeline/run.ts'
import { USUAL_RUN } from '../../../pipeline/run-options.ts'
import { queryWarehouse, runAt, SILENT } from '../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'
import { rawFile } from '../../support/pipeline/raw-files.ts'
import type { RawFormat } from '../../support/pipeline/raw-files.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const FIRST_RUN = '2026-11-18T02:00:00Z'
const SECOND_RUN = '2026-11-19T02:00:00Z'
const CLINE = appIdOf('local:cline')

let dataDir = ''
beforeEach(() => {
  dataDir = folders.make()
})

const usageCsv = (...rows: readonly string[]) =>
  `ts,app,prompt_tokens,completion_tokens\n${rows.map((row) => `2026-11-17T10:00:00Z,${row}\n`).join('')}`
const writeUsage = (text: string, name = 'a.csv') => writeRaw(dataDir, `usage/date=2026-11-17/${name}`, text)
const writeRegistry = (text: string) => writeRaw(dataDir, 'apps/registry.csv', text)
const published = () =>
  queryCurrent(
    dataDir,
    `SELECT app_id, app_name, sum(prompt_tokens) AS tokens FROM app_daily JOIN apps USING (app_id)
     GROUP BY ALL ORDER BY app_id`,
  )
const byName = () => readFileSync(join(dataDir, 'raw', 'apps', 'by-name.ndjson'), 'utf8')

describe('usage that names its apps', () => {
  it('is published under ids that follow from the names, with the first spelling', async () => {
    writeUsage(usageCsv('Cline,1,0', 'cline,10,0', 'https://www.app.example/,100,0', ',1000,0'))
    writeUsage(
      '{"ts":"2026-11-17T11:00:00Z","app":"http://app.example","prompt_tokens":5,"completion_tokens":0}\n' +
        '{"ts":"2026-11-17T11:00:00Z","app":null,"prompt_tokens":5000,"completion_tokens":0}\n',
      'b.ndjson',
    )
    await runAt(dataDir, FIRST_RUN)
    const apps = [
      { app_id: String(CLINE), app_name: 'Cline', tokens: '11' },
      { app_id: String(appIdOf('app.example')), app_name: 'app.example', tokens: '105' },
    ]
    expect(await published()).toEqual(apps.toSorted((a, b) => Number(a.app_id) - Number(b.app_id)))

    const first = byName()
    await runAt(dataDir, SECOND_RUN)
    expect(byName()).toBe(first)
    // The lost rows are made again, with the same ids.
    rmSync(join(dataDir, 'warehouse.duckdb'))
    rmSync(join(dataDir, 'raw', 'apps'), { recursive: true })
    await runAt(dataDir, '2026-11-20T02:00:00Z')
    expect(byName().match(/"app_id":\d+/g)).toEqual(first.match(/"app_id":\d+/g))
  })

  it('is not published if NEW_APPS is hidden', async () => {
    writeRegistry('app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
    writeUsage(usageCsv('Cline,1,0'))
    const config = readConfig({ DATA_DIR: dataDir, NEW_APPS: 'hidden' })
    await runNightly(config, { now: () => new Date(FIRST_RUN), progress: SILENT }, USUAL_RUN)
    expect(await published()).toEqual([])
    expect(byName()).toContain('"visibility":"hidden"')
  })

  it('counts for the registered app with this name or address', async () => {
    writeRegistry(
      'app_id,app,app_name,visibility,updated_at\n' +
        '1,,Cline,public,2025-01-01\n2,https://app.example,Two,public,2025-01-01\n' +
        '3,,Twin,public,2025-01-01\n4,,twin,public,2025-01-01\n',
    )
    writeUsage(usageCsv('CLINE,1,0', 'https://app.example/,10,0', 'twin,100,0'))
    await runAt(dataDir, FIRST_RUN)
    // A name of two apps is ambiguous.
    expect(await published()).toEqual([
      { app_id: '1', app_name: 'Cline', tokens: '1' },
      { app_id: '2', app_name: 'Two', tokens: '10' },
      { app_id: String(appIdOf('local:twin')), app_name: 'twin', tokens: '100' },
    ])
  })

  it('may be mixed with ids, and an id takes precedence over a name', async () => {
    writeRegistry('app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
    writeUsage(
      'ts,app_id,app,prompt_tokens,completion_tokens\n2026-11-17,1,Cline,1,0\n2026-11-17,,Cline,10,0\n',
    )
    writeUsage('ts,app_id,prompt_tokens,completion_tokens\n2026-11-17,1,100,0\n', 'b.csv')
    await runAt(dataDir, FIRST_RUN)
    expect(await published()).toEqual([
      { app_id: '1', app_name: 'One', tokens: '101' },
      { app_id: String(CLINE), app_name: 'Cline', tokens: '10' },
    ])
  })
})

it('rows with an empty column app name no app, in a file of any format without names', async () => {
  const files: Readonly<Record<string, (day: string) => string | Uint8Array>> = {
    csv: (day) => `ts,app,prompt_tokens,completion_tokens\n${day},,5,0\n${day},"",5,0\n`,
    ndjson: (day) =>
      `{"ts":"${day}","app":null,"prompt_tokens":5,"completion_tokens":0}\n{"ts":"${day}","APP":"","prompt_tokens":5,"completion_tokens":0}\n`,
    parquet: (day) => unnamed('parquet', day),
    arrow: (day) => unnamed('arrow', day),
  }
  writeRegistry('app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  for (const [index, [format, content]] of Object.entries(files).entries()) {
    const day = `2026-11-1${index + 1}`
    const named = `ts,app_id,prompt_tokens,completion_tokens\n${day},1,1,0\n`
    writeRaw(dataDir, `usage/date=${day}/a.csv`, named)
    writeRaw(dataDir, `usage/date=${day}/b.${format}`, content(day))
  }
  await runAt(dataDir, FIRST_RUN)
  const counted = await queryWarehouse(
    dataDir,
    'SELECT day, app_id, requests FROM usage_daily ORDER BY day, app_id',
  )
  expect(counted.map(({ app_id, requests }) => `${app_id}: ${requests}`)).toEqual(
    Object.keys(files).flatMap(() => ['0: 2', '1: 1']),
  )
})

function unnamed(format: RawFormat, day: string): Uint8Array {
  return rawFile(format, [
    ['ts', [`${day}T10:00:00Z`, `${day}T11:00:00Z`]],
    ['app', ['', '']],
    ['prompt_tokens', [5n, 5n]],
    ['completion_tokens', [0n, 0n]],
  ])
}

describe('a registry row may give by name or address', () => {
  const names = 'app_id,app,app_name,visibility,alias_of,updated_at\n'

  it('an app that another row gives an id', async () => {
    writeRegistry(
      `${names}1,,Cline,public,,2025-01-01\n2,https://two.example,Two,public,,2025-01-01\n` +
        ',CLINE,Cline 2,public,,2025-02-01\n,http://www.two.example/,,hidden,,2025-02-01\n',
    )
    writeUsage(usageCsv('Cline,1,0', 'https://two.example,10,0'))
    await runAt(dataDir, FIRST_RUN)
    expect(await published()).toEqual([{ app_id: '1', app_name: 'Cline 2', tokens: '1' }])
  })

  it('the canonical app of an alias', async () => {
    writeRegistry(
      `${names}1,,One,public,,2025-01-01\n2,https://two.example,Two,public,,2025-01-01\n` +
        '3,,Three,public,one,2025-01-01\n,Four,Four,public,https://two.example/,2025-01-01\n' +
        ',Five,Five,public,,2025-01-01\n6,,Six,public,five,2025-01-01\n',
    )
    writeUsage(usageCsv('Three,1,0', 'four,10,0', 'six,100,0'))
    await runAt(dataDir, FIRST_RUN)
    expect(await published()).toEqual([
      { app_id: '1', app_name: 'One', tokens: '1' },
      { app_id: '2', app_name: 'Two', tokens: '10' },
      { app_id: String(appIdOf('local:five')), app_name: 'Five', tokens: '100' },
    ])
  })
})

it('a registry row with a name instead of an id concerns the app of that name', async () => {
  writeRegistry(
    'app,app_name,visibility,subcategories,updated_at\nCline,Cline for all,public,cli-agent,2026-01-01\nhttps://b.example,,hidden,,2026-01-01\n',
  )
  writeUsage(usageCsv('cline,1,0', 'https://b.example,10,0'))
  await runAt(dataDir, FIRST_RUN)
  expect(await published()).toEqual([{ app_id: String(CLINE), app_name: 'Cline for all', tokens: '1' }])
})

/** Usage as the chat route records it. */
type ChatRecord = Readonly<{
  app: string
  account?: string
  title?: string
  categories?: string | readonly string[]
  requests?: number
}>
function writeRecords(day: string, ...records: readonly ChatRecord[]): void {
  const lines = records.map(({ app, account = 'a', title, categories, requests = 1 }, index) =>
    JSON.stringify({
      ts: `${day}T10:00:${String(index).padStart(2, '0')}Z`,
      app,
      app_title: title,
      app_categories: categories,
      account_id: account,
      requests,
      prompt_tokens: 1,
      completion_tokens: 0,
    }),
  )
  writeRaw(dataDir, `usage/date=${day}/chat.ndjson`, `${lines.join('\n')}\n`)
}
const apps = () => queryCurrent(dataDir, 'SELECT app_name, subcategories FROM apps ORDER BY app_name')

describe('an app that usage names first', () => {
  it('gets title and tags from the account that named it first, and from no other', async () => {
    writeRecords(
      '2026-11-17',
      { app: 'https://a.example', requests: 0, account: 'b', title: 'Never served', categories: 'game' },
      { app: 'https://a.example' },
      { app: 'https://www.a.example/', title: '  Our\tApp ', categories: 'Cli-Agent, chess,ide-extension' },
      { app: 'https://a.example', title: 'Later', categories: 'legal' },
      { app: 'https://a.example', account: 'b', title: 'Theirs', categories: 'roleplay,game' },
      { app: 'Named', title: 'Another name', categories: ['image-gen'] },
    )
    await runAt(dataDir, FIRST_RUN)
    const expected = [
      { app_name: 'Named', subcategories: '[image-gen]' },
      { app_name: 'Our App', subcategories: '[cli-agent, ide-extension]' },
    ]
    expect(await apps()).toEqual(expected)
    writeRecords('2026-11-18', { app: 'https://a.example', title: 'Later', categories: 'legal' })
    await runAt(dataDir, SECOND_RUN)
    expect(await apps()).toEqual(expected)
  })

  it('stays unregistered while no request of it was served', async () => {
    writeRecords('2026-11-17', { app: 'Served' }, { app: 'Not served', requests: 0 })
    await runAt(dataDir, FIRST_RUN)
    expect(await apps()).toEqual([{ app_name: 'Served', subcategories: '[]' }])
  })

  it.each<RawFormat>(['csv', 'parquet', 'arrow'])('gets its title and tags from %s too', async (format) => {
    const columns = [
      ['ts', ['2026-11-17T10:00:00Z']],
      ['app', ['https://a.example']],
      ['app_title', ['Ours']],
      ['app_categories', ['cli-agent,game']],
      ['prompt_tokens', [1n]],
      ['completion_tokens', [0n]],
    ] as const
    writeRaw(dataDir, `usage/date=2026-11-17/a.${format}`, rawFile(format, columns))
    await runAt(dataDir, FIRST_RUN)
    expect(await apps()).toEqual([{ app_name: 'Ours', subcategories: '[cli-agent, game]' }])
  })

  it('is one of at most NEW_APPS_PER_ACCOUNT of its account and day; others rank nobody until another day', async () => {
    const run = async (time: string) => {
      const notes: string[] = []
      const config = readConfig({ DATA_DIR: dataDir, NEW_APPS_PER_ACCOUNT: '2' })
      const progress = { ...SILENT, note: (text: string) => notes.push(text) }
      await runNightly(config, { now: () => new Date(time), progress }, USUAL_RUN)
      return notes.filter((note) => note.includes('NEW_APPS_PER_ACCOUNT'))
    }
    const junk = ['A', 'B', 'C', 'D'].map((app) => ({ app, account: 'greedy' }))
    writeRecords('2026-11-17', ...junk, { app: 'Honest', account: 'other' })
    writeRaw(
      dataDir,
      'usage/date=2026-11-17/ours.csv',
      usageCsv(...['E', 'F', 'G'].map((app) => `${app},1,0`)),
    )
    expect(await run(FIRST_RUN)).toEqual([
      expect.stringContaining('2026-11-17: account greedy named 2 new apps beyond the 2'),
    ])
    const names = async () => (await apps()).map(({ app_name }) => app_name).join(' ')
    expect(await names()).toBe('A B E F G Honest')
    // The same day counted again has no further place; another day has.
    writeRecords('2026-11-17', ...junk, { app: 'Honest', account: 'other' }, { app: 'A' })
    expect(await run('2026-11-18T03:00:00Z')).toHaveLength(1)
    writeRecords('2026-11-18', { app: 'D', account: 'greedy' })
    expect(await run(SECOND_RUN)).toEqual([])
    expect(await names()).toBe('A B D E F G Honest')
  })

  it('stays as an operator decided, even if the clocks date its registration later', async () => {
    const id = appIdOf('a.example')
    const row = (facts: object) =>
      `${JSON.stringify({ app_id: id, subcategories: [], alias_of: null, ...facts })}\n`
    writeRecords('2026-11-17', { app: 'https://a.example' }, { app: 'Other' })
    writeRaw(
      dataDir,
      'apps/decision-1.ndjson',
      row({ app_name: 'Ours', visibility: 'hidden', updated_at: '2026-11-16T03:00:00Z' }),
    )
    // An app that requests registered, in the file of an earlier version.
    const registered = { updated_at: '2026-11-17T12:00:00.002Z', registered_at: '2026-11-17T12:00:00.000Z' }
    writeRaw(
      dataDir,
      'apps/chat.ndjson',
      row({ app_name: 'Theirs', visibility: 'public', referer: 'a.example', revision: 2, ...registered }),
    )
    await runAt(dataDir, FIRST_RUN)
    expect(await apps()).toEqual([{ app_name: 'Other', subcategories: '[]' }])
  })
})
