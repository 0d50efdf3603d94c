/** CONTRACT 7: the app registry: which row wins, where aliases lead, and which violations stop a run. */
import { afterAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../pipeline/config.ts'
import { runNightly } from '../../../pipeline/run.ts'
import { SILENT, fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, queryCurrent, writeRaw } from '../../support/pipeline/nightly.ts'

const HEADER = 'app_id,app_name,visibility,subcategories,alias_of,updated_at'
const AS_OF = '2026-01-10T02:00:00Z'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

function folder(...registry: readonly string[]): string {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', [HEADER, ...registry].join('\n'))
  writeRaw(
    dataDir,
    'usage/date=2026-01-05/rows.csv',
    `ts,app_id,prompt_tokens,completion_tokens\n${[1, 2, 3, 4].map((id) => `2026-01-05,${id},1,0\n`).join('')}`,
  )
  return dataDir
}

describe('broken registries', () => {
  const wrongRows: readonly (readonly [string, string])[] = [
    ['1,A,secret,,,2025-01-01', 'visibility "secret" is none of'],
    ['2,A,public,game|chess,,2025-01-01', 'unknown subcategories: chess'],
    ['3,,public,,,2025-01-01', 'app_name is empty'],
    [
      '4,\u200B\u202E\uFEFF\u0007,public,,,2025-01-01',
      'app_name is empty, or holds nothing that can be seen',
    ],
    ['one,A,public,,,2025-01-01', 'app_id is not an integer'],
    ['0,A,public,,,2025-01-01', 'app_id 0 stands for requests that name no app'],
    ['5,A,public,,two,2025-01-01', 'alias_of "two" names no app of the registry'],
    ['6,A,public,[game,,2025-01-01', 'subcategories is not a list'],
    ['7,A,public,,,yesterday', 'updated_at is not a UTC timestamp'],
    // It would outrank every later row.
    ['8,A,public,,,infinity', 'updated_at is not a UTC timestamp'],
    ['9,A,public', 'broken line: 3 fields instead of 6'],
  ]

  it('stop the run, which names each broken row in order', async () => {
    const dataDir = folder(...wrongRows.map(([row]) => row))
    const failure = String(await runAt(dataDir, AS_OF).catch((error: unknown) => error)).split('\n')
    const named = failure.filter((line) => line.includes('registry.csv, row '))
    for (const [index, [, reason]] of wrongRows.entries())
      expect.soft(named[index]).toContain(`registry.csv, row ${index + 2}: ${reason}`)
    expect(named).toHaveLength(wrongRows.length)
  })

  const cases: readonly [string, readonly string[], RegExp][] = [
    [
      'a cycle',
      ['1,A,public,,2,2025-01-01', '2,B,public,,3,2025-01-01', '3,C,public,,1,2025-01-01'],
      /1 -> 2 -> 3 -> 1/,
    ],
    ['an alias of itself', ['7,A,public,,7,2025-01-01'], /7 -> 7/],
    [
      'an alias of an unknown app',
      ['1,A,public,,99,2025-01-01'],
      /alias_of of app 1 names the unknown app 99/,
    ],
    ['no registry row at all', [], /There is no app in the registry/],
  ]

  it.each(cases)('%s stops the run and is named', async (_name, registry, message) => {
    const dataDir = folder(...registry)
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(message)
  })

  it('a name that is an object, a list or not UTF-8 stops the run and is named', async () => {
    const dataDir = folder()
    const row = (name: string) =>
      `{"app_id":1,"app_name":${name},"visibility":"public","updated_at":"2025-01-01"}\n`
    writeRaw(dataDir, 'apps/nested.ndjson', `${row('{"en":"A"}')}${row('["A"]')}`)
    writeRaw(dataDir, 'apps/bytes.csv', Buffer.from(`${HEADER}\n2,Caf\xE9,public,,,2025-01-01\n`, 'latin1'))
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(
      /bytes.csv, row 2: app_name is not readable text in UTF-8\n.*nested.ndjson, row 1: app_name is an object or a list, not one value\n.*row 2: app_name is an object/,
    )
  })

  it('a row dated after the run gives a warning, since it outranks every later decision', async () => {
    const dataDir = folder('1,A,public,,,2025-01-01', '2,B,public,,,2030-01-01')
    const notes: string[] = []
    await runNightly(readConfig({ DATA_DIR: dataDir }), {
      now: () => new Date(AS_OF),
      progress: { ...SILENT, note: (text) => notes.push(text) },
    })
    expect(notes.join('\n')).toMatch(
      /Warning: 1 registry row dated after this run .*: apps\/registry\.csv, row 3: app 2\. Correct updated_at/,
    )
  })

  it.each([
    ['all apps are hidden', '1,A,hidden,,,2025-01-01', '0 of 1 app in the registry are public'],
    ['the apps of the usage are others', '7,A,public,,,2025-01-01', '1 app with usage are not registered'],
  ])('a run with empty rankings prints a loud warning: %s', async (_name, registry, words) => {
    const dataDir = folder(registry)
    writeRaw(
      dataDir,
      'usage/date=2026-01-05/rows.csv',
      'ts,app_id,prompt_tokens,completion_tokens\n2026-01-05,1,5,5\n',
    )
    const notes: string[] = []
    await runNightly(readConfig({ DATA_DIR: dataDir }), {
      now: () => new Date(AS_OF),
      progress: { ...SILENT, note: (text) => notes.push(text) },
    })
    expect(notes.join('\n')).toContain('WARNING: NO APP IS RANKED.')
    expect(notes.join('\n')).toContain(words)
  })

  it.each([
    [20, 'can be seen'],
    [21, 'and 1 more'],
  ])('of %i violations the last line is %s', async (faults, last) => {
    const dataDir = folder(
      ...Array.from({ length: faults }, (_, index) => `${index + 1},,public,,,2025-01-01`),
    )
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(new RegExp(`${last}$`))
  })

  it('each cycle is reported once, without the apps that lead into it', async () => {
    const dataDir = folder('1,A,public,,2,2025-01-01', '2,B,public,,1,2025-01-01', '3,C,public,,1,2025-01-01')
    const failure: unknown = await runAt(dataDir, AS_OF).catch((error: unknown) => error)
    expect(String(failure).match(/->/g)).toHaveLength(2)
  })

  it('a missing registry is reported with the remedy', async () => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'usage/date=2026-01-05/rows.csv', 'ts,app_id,prompt_tokens,completion_tokens\n')
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow('There is no app registry: put a file')
  })

  it('a broken registry leaves the earlier one in the warehouse unchanged', async () => {
    const dataDir = folder('1,A,public,,,2025-01-01')
    await runAt(dataDir, AS_OF)
    writeRaw(dataDir, 'apps/later.csv', `${HEADER}\n1,A,secret,,,2025-02-01`)
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow('later.csv, row 2')
    expect(await queryWarehouse(dataDir, 'SELECT visibility FROM registry')).toEqual([
      { visibility: 'public' },
    ])
  })
})

describe('the winning row', () => {
  it('is the newest, then from the later file, then the later line; its texts are trimmed', async () => {
    const dataDir = folder(
      '1,A,secret,chess,,2025-01-01',
      '2, A , public ,game | cli-agent |, ,2025-01-01',
      '3,\ufeffA,public,,,2025-01-01',
      '4,A,public,,,2025-01-01',
      '4,B,public,,,2025-01-01',
      '5,X,public,,,2025-01-01',
    )
    // An old wrong row is corrected by appending.
    writeRaw(
      dataDir,
      'apps/more.ndjson',
      '{"app_id":1,"app_name":"B","visibility":"public","subcategories":["game","cli-agent","game"],"alias_of":null,"updated_at":"2025-01-01T02:00:00+01:00"}',
    )
    writeRaw(dataDir, 'apps/a-earlier.csv', `${HEADER}\n5,Y,public,,,2025-01-01`)
    await runAt(dataDir, AS_OF)
    const apps = 'SELECT app_id, app_name, subcategories FROM apps ORDER BY app_id'
    expect((await queryCurrent(dataDir, apps)).map((row) => Object.values(row).join(' '))).toEqual([
      '1 B [cli-agent, game]',
      '2 A [cli-agent, game]',
      '3 A []',
      '4 B []',
      '5 X []',
    ])
  })
})

describe('requests that name no app', () => {
  it('are counted separately and privately, not as an unregistered app', async () => {
    const dataDir = folder('1,A,public,,,2025-01-01', '2,B,public,,,2025-01-01', '3,C,public,,,2025-01-01')
    writeRaw(
      dataDir,
      'usage/date=2026-01-05/more.csv',
      'ts,app_id,prompt_tokens,completion_tokens,requests\n2026-01-05,0,1000,7,3\n2026-01-05,0,,,2\n',
    )
    const report = await runAt(dataDir, AS_OF)
    expect(report.not_published).toMatchObject({
      requests_unattributed: 5,
      tokens_unattributed: '1007',
      requests_unregistered: 1,
      tokens_unregistered: '1',
      unregistered: [{ app_id: '4', requests: '1', tokens: '1' }],
    })
    expect(fact(report, 'resolve', 'apps_unregistered')).toBe(1)
    expect(JSON.stringify(report.stages)).not.toContain('unattributed')
    expect(await queryCurrent(dataDir, 'SELECT DISTINCT app_id FROM app_daily ORDER BY 1')).toEqual([
      { app_id: '1' },
      { app_id: '2' },
      { app_id: '3' },
    ])
  })
})

describe('aliases', () => {
  it('count for the end of their chain, with its visibility', async () => {
    const dataDir = folder(
      '1,Alias of alias,hidden,,2,2025-01-01',
      '2,,private,,3,2025-01-01',
      '3,Canonical,public,,,2025-01-01',
      '4,Hidden,hidden,,,2025-01-01',
    )
    const report = await runAt(dataDir, AS_OF)
    expect(await queryCurrent(dataDir, 'SELECT app_id, prompt_tokens FROM app_daily')).toEqual([
      { app_id: '3', prompt_tokens: '3' },
    ])
    expect(report.stages).toContainEqual(
      expect.objectContaining({ stage: 'resolve', apps_registered: 4, aliases: 2, apps_public: 1 }),
    )
    expect(report.not_published).toMatchObject({ tokens_hidden: '1' })
  })
})
