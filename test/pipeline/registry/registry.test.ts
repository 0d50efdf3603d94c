/** CONTRACT 7: the app registry: which row wins, where aliases lead, and which violations stop a run. */
import { describe, expect, it } from 'vitest'
import { makeFolder } from '../../support/folders.ts'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { deliver, queryCurrent, register, withRegistry, writeRaw } from '../../support/pipeline/nightly.ts'

const DAY = '2026-01-05'
const AS_OF = '2026-01-10T02:00:00Z'

const folder = (...registry: readonly string[]) =>
  withRegistry(registry, DAY, ['1,1,0', '2,1,0', '3,1,0', '4,1,0'])

describe('broken registries', () => {
  const wrongRows: readonly (readonly [string, string])[] = [
    ['1,A,secret,,,2025-01-01', 'visibility "secret" is none of'],
    ['2,A,public,game|chess,,2025-01-01', 'unknown subcategories: chess'],
    ['3,,public,,,2025-01-01', 'app_name is empty'],
    ...['\u200B\u202E\uFEFF\u0007', '\u3164', '\uFE0F \u{E0061}\u{E0000}'].map(
      (name, at) =>
        [
          `${10 + at},${name},public,,,2025-01-01`,
          'app_name is empty, or holds nothing that can be seen',
        ] as const,
    ),
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

  const nameless = (count: number) =>
    Array.from({ length: count }, (_, id) => `${id + 1},,public,,,2025-01-01`)
  const cases: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['an alias of itself', ['7,A,public,,7,2025-01-01'], /: 7 -> 7$/],
    [
      'an alias of an unknown app',
      ['1,A,public,,99,2025-01-01'],
      /alias_of of app 1 names the unknown app 99/,
    ],
    [
      'a circle, once and without the apps that lead into it',
      ['1,A,public,,2,2025-01-01', '2,B,public,,1,2025-01-01', '3,C,public,,1,2025-01-01'],
      /^[^>]* circle: 1 -> 2 -> 1$/,
    ],
    [
      'several circles and unknown apps, each once and circles from their smallest app on',
      ['5 3', '4 5', '3 4', '2 1', '1 2', '7 99', '6 98', '8 7'].map((pair) => {
        const [id, target] = pair.split(' ')
        return `${id},A,public,,${target},2025-01-01`
      }),
      /:\n {2}alias_of of app 6 names the unknown app 98\n.*app 7 names the unknown app 99\n.*circle: 1 -> 2 -> 1\n.*circle: 3 -> 4 -> 5 -> 3$/,
    ],
    ['no registry row at all', [], /There is no app in the registry/],
    ['twenty violations', nameless(20), /can be seen$/],
    ['twenty-one violations, of which the last is counted', nameless(21), /and 1 more$/],
  ]

  it.each(cases)('%s stops the run and is named', async (_name, registry, message) => {
    await expect(runAt(folder(...registry), AS_OF)).rejects.toThrow(message)
  })

  it('a name that is an object, a list or not UTF-8 stops the run and is named', async () => {
    const dataDir = folder()
    const row = (name: string) =>
      `{"app_id":1,"app_name":${name},"visibility":"public","updated_at":"2025-01-01"}\n`
    writeRaw(dataDir, 'apps/nested.ndjson', `${row('{"en":"A"}')}${row('["A"]')}`)
    const bytes = 'app_id,app_name,visibility,updated_at\n2,Caf\xE9,public,2025-01-01\n'
    writeRaw(dataDir, 'apps/bytes.csv', Buffer.from(bytes, 'latin1'))
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(
      /bytes.csv, row 2: app_name is not readable text in UTF-8\n.*nested.ndjson, row 1: app_name is an object or a list, not one value\n.*row 2: app_name is an object/,
    )
  })

  it('a name is one line: control characters in it are spaces, and joiners, directions and quotes stay', async () => {
    const names = {
      '"A\tB\r\nC\u0092s\u2028D\u007F"': 'A B C s D',
      '"""E"" "': '"E"',
      '👩\u200D💻\uFE0F می\u200Cخواهم': '👩\u200D💻\uFE0F می\u200Cخواهم',
      'so\u00ADft \u202Bשלום\u202C \u200Bzero': 'so\u00ADft \u202Bשלום\u202C \u200Bzero',
    }
    const dataDir = folder(...Object.keys(names).map((name, id) => `${id + 1},${name},public,,,2025-01-01`))
    await runAt(dataDir, AS_OF)
    const published = await queryCurrent(dataDir, 'SELECT app_name FROM apps ORDER BY app_id')
    expect(published.map(({ app_name }) => app_name)).toEqual(Object.values(names))
  })

  it('a missing registry is reported with the remedy', async () => {
    const dataDir = makeFolder()
    deliver(dataDir, DAY, ['1,1,0'])
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow('There is no app registry: put a file')
  })

  it('a broken registry leaves the earlier one in the warehouse unchanged', async () => {
    const dataDir = folder('1,A,public,,,2025-01-01')
    await runAt(dataDir, AS_OF)
    register(dataDir, ['1,A,secret,,,2025-02-01'], 'later.csv')
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow('later.csv, row 2')
    const kept = await queryWarehouse(dataDir, 'SELECT visibility FROM registry')
    expect(kept).toEqual([{ visibility: 'public' }])
  })

  it.each([
    [
      'a row dated after the run, which outranks newer rows',
      ['1,A,public,,,2025-01-01', '2,B,public,,,2030-01-01'],
      /Warning: registry rows that are dated after this run .*: apps\/registry\.csv, row 3: app 2\. Correct updated_at/,
    ],
    [
      'empty rankings, since all apps are hidden',
      ['1,A,hidden,,,2025-01-01'],
      /WARNING: NO APP IS RANKED\. 0 of 1 app in the registry are public/,
    ],
    [
      'empty rankings, since the apps of the usage are others',
      ['7,A,public,,,2025-01-01'],
      /WARNING: NO APP IS RANKED\. .* 4 apps with usage are not registered/,
    ],
  ])('a run warns of %s', async (_what, registry, warning) => {
    expect((await runAt(folder(...registry), AS_OF)).notes.join('\n')).toMatch(warning)
  })
})

it('the winning row is the newest, then from the later file, then the later line; its texts are trimmed', async () => {
  const dataDir = folder(
    '1,A,secret,chess,,2025-01-01',
    '2, A , public ,game | cli-agent |, ,2025-01-01',
    '3,\ufeffA,public,,,2025-01-01',
    '4,A,public,,,2025-01-01',
    '4,B,public,,,2025-01-01',
    '5,X,public,,,2025-01-01',
  )
  // An old wrong row is corrected by appending.
  const row = { app_id: 1, app_name: 'B', visibility: 'public', subcategories: ['game', 'cli-agent', 'game'] }
  writeRaw(dataDir, 'apps/more.ndjson', JSON.stringify({ ...row, updated_at: '2025-01-01T02:00:00+01:00' }))
  register(dataDir, ['5,Y,public,,,2025-01-01'], 'a-earlier.csv')
  await runAt(dataDir, AS_OF)
  const apps = await queryCurrent(dataDir, 'SELECT app_id, app_name, subcategories FROM apps ORDER BY app_id')
  expect(apps.map((each) => Object.values(each).join(' '))).toEqual([
    '1 B [cli-agent, game]',
    '2 A [cli-agent, game]',
    '3 A []',
    '4 B []',
    '5 X []',
  ])
})

it('requests that name no app are counted separately and privately, not as an unregistered app', async () => {
  const dataDir = folder('1,A,public,,,2025-01-01', '2,B,public,,,2025-01-01', '3,C,public,,,2025-01-01')
  const rows = `${DAY},0,1000,7,3\n${DAY},0,,,2\n`
  writeRaw(
    dataDir,
    `usage/date=${DAY}/more.csv`,
    `ts,app_id,prompt_tokens,completion_tokens,requests\n${rows}`,
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
  const ids = await queryCurrent(dataDir, 'SELECT DISTINCT app_id FROM app_daily ORDER BY 1')
  expect(ids.map(({ app_id }) => app_id)).toEqual(['1', '2', '3'])
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
    const counted = await queryCurrent(dataDir, 'SELECT app_id, prompt_tokens FROM app_daily')
    expect(counted).toEqual([{ app_id: '3', prompt_tokens: '3' }])
    const facts = { stage: 'resolve', apps_registered: 4, aliases: 2, apps_public: 1 }
    expect(report.stages).toContainEqual(expect.objectContaining(facts))
    expect(report.not_published).toMatchObject({ tokens_hidden: '1' })
  })

  it('may form a chain of a thousand, and a circle of a thousand is named whole', async () => {
    const alias = (id: number, of: number) => `${id},A,public,,${of},2025-01-01`
    const ids = Array.from({ length: 1000 }, (_, index) => index + 1)
    const chain = folder('1,End,public,,,2025-01-01', ...ids.slice(1).map((id) => alias(id, id - 1)))
    await runAt(chain, AS_OF)
    expect(await queryCurrent(chain, 'SELECT app_id, prompt_tokens FROM app_daily')).toEqual([
      { app_id: '1', prompt_tokens: '4' },
    ])
    const circle = folder(...ids.map((id) => alias(id, (id % 1000) + 1)))
    await expect(runAt(circle, AS_OF)).rejects.toThrow(`circle: ${ids.join(' -> ')} -> 1`)
  })
})
