/** CONTRACT 9: `npm run apps`: an operator's decisions about apps, and their effect on the next nightly run. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { apps as runApps } from '../../../pipeline/apps.ts'
import { decide as appendDecision, type AppState } from '../../../pipeline/registry/decide.ts'
import { hide, show } from '../../../pipeline/registry/decisions.ts'
import { readConfig } from '../../../pipeline/config.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'
import { REPOSITORY, runCommandLine, startProcess } from '../../support/processes.ts'

const HEADER = 'app_id,app_name,visibility,subcategories,alias_of,updated_at'
const AS_OF = '2026-01-10T02:00:00Z'
const BECAUSE = ['--reason', 'asked for by its owner']

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

function folder(...registry: readonly string[]): string {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', [HEADER, ...registry].join('\n'))
  writeRaw(
    dataDir,
    'usage/date=2026-01-05/rows.csv',
    `ts,app_id,prompt_tokens,completion_tokens\n${[1, 2, 3].map((id) => `2026-01-05,${id},${id},0\n`).join('')}`,
  )
  return dataDir
}

const THREE = [
  '1,One,public,game|legal,,2025-01-01',
  '2,Two,public,,,2025-01-01',
  '3,Three,private,,,2025-01-01',
]

function apps(dataDir: string, ...args: readonly string[]) {
  return runCommandLine(runApps, args, { DATA_DIR: dataDir })
}

/** A decision that must succeed. */
async function decide(dataDir: string, ...args: readonly string[]): Promise<void> {
  const { code, stderr } = await apps(dataDir, ...args)
  expect(stderr).toContain('It takes effect with the next nightly run')
  expect(code).toBe(0)
}

const listSchema = z.array(z.looseObject({ app_id: z.string() }))

async function listed(dataDir: string, ...args: readonly string[]) {
  const { code, stdout } = await apps(dataDir, 'list', '--json', ...args)
  expect(code).toBe(0)
  return listSchema.parse(JSON.parse(stdout))
}

function decisionFiles(dataDir: string): string[] {
  return readdirSync(join(dataDir, 'raw', 'apps')).filter(
    (name) => name !== 'registry.csv' && !name.startsWith('.'),
  )
}

const published = (dataDir: string) =>
  queryCurrent(
    dataDir,
    `SELECT a.app_id, a.app_name, a.subcategories, d.prompt_tokens
     FROM apps AS a LEFT JOIN app_daily AS d ON d.app_id = a.app_id ORDER BY a.app_id`,
  )

describe('decisions', () => {
  it('change the next snapshot', async () => {
    const dataDir = folder(...THREE)
    await decide(dataDir, 'rename', '1', 'Uno, "the first"', ...BECAUSE)
    await decide(dataDir, 'tag', '1', '--add', 'cli-agent', '--remove', 'legal', ...BECAUSE)
    await decide(dataDir, 'hide', '2', ...BECAUSE)
    await decide(dataDir, 'show', '3', ...BECAUSE)
    await runAt(dataDir, AS_OF)
    expect(await published(dataDir)).toEqual([
      { app_id: '1', app_name: 'Uno, "the first"', subcategories: '[cli-agent, game]', prompt_tokens: '1' },
      { app_id: '3', app_name: 'Three', subcategories: '[]', prompt_tokens: '3' },
    ])

    await decide(dataDir, 'alias', '1', '2', '--of', '3', ...BECAUSE)
    await runAt(dataDir, '2026-01-10T03:00:00Z')
    expect(await published(dataDir)).toEqual([
      { app_id: '3', app_name: 'Three', subcategories: '[]', prompt_tokens: '6' },
    ])

    await decide(dataDir, 'alias', '1', '--none', ...BECAUSE)
    await runAt(dataDir, '2026-01-10T04:00:00Z')
    expect((await published(dataDir)).map((row) => row['prompt_tokens'])).toEqual(['1', '5'])
  })

  it('of several apps are one file of whole lines, with action, reason and time', async () => {
    const dataDir = folder(...THREE)
    await decide(dataDir, 'hide', '2', '1', '02', '--reason', 'they asked 😀')
    const [name = '', ...others] = decisionFiles(dataDir)
    expect(others).toEqual([])
    expect(name).toMatch(/^decision-\d{8}T\d{9}Z-[\da-f]{8}\.ndjson$/)
    const lines = readFileSync(join(dataDir, 'raw', 'apps', name), 'utf8')
      .trimEnd()
      .split('\n')
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual(
      [
        { app_id: 1, app_name: 'One', subcategories: ['game', 'legal'] },
        { app_id: 2, app_name: 'Two', subcategories: [] },
      ].map((row) => ({
        ...row,
        visibility: 'hidden',
        alias_of: null,
        updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/),
        action: 'hide',
        reason: 'they asked 😀',
      })),
    )
  })

  it('are shown by history, beside delivered rows', async () => {
    const dataDir = folder(...THREE)
    await decide(dataDir, 'hide', '1', '--reason', 'first')
    await decide(dataDir, 'show', '1', '--reason', 'second')
    const { stdout } = await apps(dataDir, 'history', '1', '--json')
    expect(JSON.parse(stdout)).toMatchObject([
      { action: null, reason: null, visibility: 'public', file: 'apps/registry.csv' },
      { action: 'hide', reason: 'first', visibility: 'hidden' },
      { action: 'show', reason: 'second', visibility: 'public' },
    ])
    expect((await apps(dataDir, 'history', '01')).stdout).toContain('(3 rows)')
  })

  it('that change nothing write nothing', async () => {
    const dataDir = folder(...THREE)
    for (const args of [
      ['show', '1'],
      ['rename', '1', ' One '],
      ['tag', '1', '--add', 'game', '--remove', 'roleplay'],
      ['alias', '1', '--none'],
    ]) {
      const { code, stderr } = await apps(dataDir, ...args, ...BECAUSE)
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('is unchanged') })
    }
    expect(decisionFiles(dataDir)).toEqual([])
  })

  it('outrank a row dated in the future, with a message', async () => {
    const dataDir = folder('1,One,public,,,2999-12-31T23:59:59.999999Z', '2,Two,public,,,2025-01-01')
    const { code, stderr } = await apps(dataDir, 'hide', '1', ...BECAUSE)
    expect(code).toBe(0)
    expect(stderr).toContain('3000-01-01T00:00:00.000Z')
    expect((await listed(dataDir, 'One'))[0]).toMatchObject({ visibility: 'hidden' })
  })

  it.each([
    ['time', '1,One,public,,,soon'],
    ['list of tags', '1,One,public,[game,,2025-01-01'],
  ])('can be taken about an app whose only row has no %s', async (_, row) => {
    const dataDir = folder(row)
    await decide(dataDir, 'hide', '1', ...BECAUSE)
    expect(await listed(dataDir, '1')).toMatchObject([{ visibility: 'hidden' }])
  })

  it('of the same millisecond keep their order', async () => {
    const dataDir = folder(...THREE)
    const dependencies = {
      config: readConfig({ DATA_DIR: dataDir }),
      now: () => new Date('2026-01-09T00:00:00Z'),
      print: () => undefined,
      note: () => undefined,
    }
    await hide.prepare(['1', ...BECAUSE])(dependencies)
    await show.prepare(['1', ...BECAUSE])(dependencies)
    expect(await listed(dataDir, '1')).toMatchObject([
      { visibility: 'public', updated_at: '2026-01-09T00:00:00.001Z' },
    ])
  })

  it('about the visibility of an alias warn that the canonical app decides', async () => {
    const dataDir = folder(...THREE, '4,Alias,public,,2,2025-01-01')
    const { stderr } = await apps(dataDir, 'hide', '4', ...BECAUSE)
    expect(stderr).toContain('App 4 is an alias: its usage counts for app 2')
  })

  it('keep ids past 2^53 exactly', async () => {
    const dataDir = folder(
      '9007199254740993,Big,public,,,2025-01-01',
      '9223372036854775807,Most,public,,,2025-01-01',
    )
    await decide(dataDir, 'alias', '9007199254740993', '--of', '9223372036854775807', ...BECAUSE)
    expect(await listed(dataDir)).toMatchObject([
      { app_id: '9007199254740993', alias_of: '9223372036854775807' },
      { app_id: '9223372036854775807', alias_of: null },
    ])
  })

  it('taken at the same time are all kept, and do not undo each other', async () => {
    const dataDir = folder(...THREE)
    const program = join(REPOSITORY, 'pipeline', 'apps.ts')
    const decisions = [
      ['hide', '1'],
      ['rename', '1', 'Renamed'],
      ['tag', '1', '--add', 'cli-agent'],
    ].map(async (args) => {
      const command = [program, ...args, '--reason', args.join(' ')]
      return (await startProcess(process.execPath, command, { environment: { DATA_DIR: dataDir } }).ended)
        .code
    })
    expect(await Promise.all(decisions)).toEqual([0, 0, 0])
    const history = (await apps(dataDir, 'history', '1', '--json')).stdout
    for (const reason of ['hide 1', 'rename 1 Renamed', 'tag 1 --add cli-agent'])
      expect(history).toContain(`"reason": "${reason}"`)
    const [app] = await listed(dataDir, '1')
    expect(app).toMatchObject({
      app_name: 'Renamed',
      visibility: 'hidden',
      subcategories: ['cli-agent', 'game', 'legal'],
    })
  })

  it('repair a registry that stops the nightly run', async () => {
    const dataDir = folder('1,One,secret,,,2025-01-01', '2,Two,public,,9,2025-01-01')
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow('secret')
    expect((await apps(dataDir, 'list')).stderr).toContain('stop the nightly run: 2;')
    await decide(dataDir, 'hide', '1', ...BECAUSE)
    await decide(dataDir, 'alias', '2', '--none', ...BECAUSE)
    expect((await apps(dataDir, 'list')).stderr).toBe('')
    await runAt(dataDir, AS_OF)
    expect(await published(dataDir)).toMatchObject([{ app_id: '2' }])
  })
})

describe('list', () => {
  it('shows the winning rows, with the address of apps from chat requests', async () => {
    const dataDir = folder(...THREE)
    const chat = (referer: string, updated_at: string) =>
      `{"app_id":1000000000,"app_name":"A\\tB","visibility":"public","subcategories":["game"],"alias_of":null,"updated_at":"${updated_at}","referer":"${referer}"}\n`
    writeRaw(
      dataDir,
      'apps/chat.ndjson',
      chat('app.example/x', '2026-01-02') + chat('old.example', '2026-01-01'),
    )
    await decide(dataDir, 'hide', '1000000000', ...BECAUSE)
    const { stdout } = await apps(dataDir, 'list')
    const cells = stdout.split('\n').map((line) => line.trim().split(/ {2,}/))
    expect(cells[0]).toEqual([
      'app_id',
      'app_name',
      'visibility',
      'subcategories',
      'alias_of',
      'referer',
      'updated_at',
    ])
    expect(cells[2]).toEqual(['1', 'One', 'public', '["game","legal"]', '2025-01-01T00:00:00.000Z'])
    expect(cells[5]?.slice(0, 5)).toEqual(['1000000000', 'A B', 'hidden', '["game"]', 'app.example/x'])
    expect(cells[6]).toEqual(['(4 rows)'])
  })

  it('skips a row without an id, and warns that it stops the nightly run', async () => {
    const { code, stdout, stderr } = await apps(folder(...THREE, 'four,Four,public,,,2025-01-01'), 'list')
    expect(code).toBe(0)
    expect(stdout.match(/^ *\d (?= )/gm)?.map(Number)).toEqual([1, 2, 3])
    expect(stderr).toContain('nightly run: 1; the first: apps/registry.csv, row 5: app_id is not an integer')
  })

  it.each([
    ['t', ['2', '3']],
    ['TWO', ['2']],
    ['3', ['3']],
    ['nobody', []],
  ])('filters by %j', async (text, ids) => {
    expect((await listed(folder(...THREE), text)).map(({ app_id }) => app_id)).toEqual(ids)
  })
})

describe('wrong use', () => {
  it.each([
    { args: [], remedy: 'list, history, rename' },
    { args: ['delete', '1'], remedy: 'list, history, rename' },
    { args: ['hide', '1'], remedy: '--reason TEXT' },
    { args: ['hide', '1', '--reason', ' '], remedy: '--reason TEXT' },
    { args: ['hide', '1', '--reason', 'a\nb'], remedy: '--reason TEXT' },
    { args: ['hide', ...BECAUSE], remedy: 'list shows the ids' },
    { args: ['hide', 'One', ...BECAUSE], remedy: '"One" is not the id of an app' },
    { args: ['hide', '1', '77', ...BECAUSE], remedy: 'No app has the id 77' },
    { args: ['hide', '1', '--because', 'x'], remedy: '--help' },
    { args: ['rename', '1', ...BECAUSE], remedy: 'rename ID NAME' },
    { args: ['rename', '1', '  ', ...BECAUSE], remedy: 'one line' },
    { args: ['rename', '1', 'a\u2028b', ...BECAUSE], remedy: 'one line' },
    { args: ['tag', '1', ...BECAUSE], remedy: '--add SUBCATEGORY' },
    { args: ['tag', '1', '--add', 'coding', ...BECAUSE], remedy: 'expected cli-agent' },
    { args: ['alias', '1', ...BECAUSE], remedy: '--of ID' },
    { args: ['alias', '1', '--of', '2', '--none', ...BECAUSE], remedy: '--of ID' },
    { args: ['alias', '1', '--of', '1', ...BECAUSE], remedy: '1 -> 1' },
    { args: ['alias', '1', '--of', '99', ...BECAUSE], remedy: 'unknown app 99' },
    { args: ['alias', '1', '2', '--of', '2', ...BECAUSE], remedy: '2 -> 2' },
    { args: ['history', '99'], remedy: 'list shows the ids' },
    { args: ['history', 'One'], remedy: '"One" is not the id of an app' },
    { args: ['history'], remedy: 'id of one app' },
  ])('$args exits 2, names the remedy and writes nothing', async ({ args, remedy }) => {
    const dataDir = folder(...THREE)
    const { code, stdout, stderr } = await apps(dataDir, ...args)
    expect(stderr).toContain(remedy)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(decisionFiles(dataDir)).toEqual([])
  })

  it('a decision that closes a cycle of aliases is rejected', async () => {
    const dataDir = folder(...THREE)
    await decide(dataDir, 'alias', '1', '--of', '2', ...BECAUSE)
    await decide(dataDir, 'alias', '2', '--of', '3', ...BECAUSE)
    const { code, stderr } = await apps(dataDir, 'alias', '3', '--of', '1', ...BECAUSE)
    expect(stderr).toContain('1 -> 2 -> 3 -> 1')
    expect(code).toBe(2)
    expect(decisionFiles(dataDir)).toHaveLength(2)
  })

  it('apps reports a missing registry; an unreadable one is named with exit code 1', async () => {
    for (const args of [['list'], ['hide', '1', ...BECAUSE]]) {
      const empty = await apps(folders.make(), ...args)
      expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no app registry') })
    }
    const dataDir = folder(...THREE)
    writeRaw(dataDir, 'apps/broken.parquet', 'not parquet')
    const broken = await apps(dataDir, 'list')
    expect(broken).toMatchObject({ code: 1, stderr: expect.stringContaining('broken.parquet') })
  })

  it('a lock file that is none is named, not reported as held', async () => {
    const dataDir = folder(...THREE)
    const path = join(dataDir, 'raw', 'apps', '.decisions.lock')
    mkdirSync(path)
    const { code, stderr } = await apps(dataDir, 'hide', '1', ...BECAUSE)
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${path} cannot be locked: `)])
  })

  it('a decision exits with 75 if another one takes too long', async () => {
    const dataDir = folder(...THREE)
    using other = new DatabaseSync(join(dataDir, 'raw', 'apps', '.decisions.lock'))
    other.exec('BEGIN EXCLUSIVE')
    const dependencies = {
      config: readConfig({ DATA_DIR: dataDir }),
      now: () => new Date(),
      print: () => undefined,
      note: () => undefined,
    }
    const decision = { action: 'hide', ids: ['1'], reason: 'x', change: (app: AppState) => app }
    const error: unknown = await appendDecision(dependencies, decision, 50).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      exitCode: 75,
      message: expect.stringContaining('Another decision about the apps is under way'),
    })
  })

  it('--help goes to stdout and names every command and exit code', async () => {
    const { code, stdout } = await apps(folders.make(), '--help')
    expect(code).toBe(0)
    for (const name of ['list', 'history', 'rename', 'hide', 'show', 'tag', 'alias', '75 another decision'])
      expect(stdout).toContain(name)
  })
})

describe('unattributed', () => {
  const line = (account: string, changes: Readonly<Record<string, unknown>>) =>
    JSON.stringify({
      ts: '2026-01-05T10:00:00.000Z',
      app_id: 0,
      prompt_tokens: 10,
      completion_tokens: 5,
      requests: 1,
      account_id: account,
      ...changes,
    })

  it('shows served requests without an app, by account', async () => {
    const dataDir = folder(...THREE)
    const lines = [
      line('small', {}),
      line('large', { prompt_tokens: '9007199254740993' }),
      line('large', { ts: '2026-01-06T00:00:00.000Z', prompt_tokens: null, completion_tokens: null }),
      line('named', { app_id: 7 }),
      line('refused', { requests: 0 }),
      '{"torn',
    ]
    writeRaw(dataDir, 'usage/date=2026-01-05/chat-a.ndjson', lines.join('\n'))
    const { code, stdout } = await apps(dataDir, 'unattributed')
    expect(code).toBe(0)
    expect(stdout.split('\n').map((text) => text.trim().split(/ +/))).toMatchObject([
      ['account_id', 'requests', 'tokens', 'first_day', 'last_day'],
      {},
      ['large', '2', '9007199254740998', '2026-01-05', '2026-01-06'],
      ['small', '1', '15', '2026-01-05', '2026-01-05'],
      ['(2', 'rows)'],
      {},
    ])
    const json = await apps(dataDir, 'unattributed', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject([{ account_id: 'large' }, { account_id: 'small' }])
  })

  it('shows nothing without chat records', async () => {
    const { code, stdout } = await apps(folder(...THREE), 'unattributed', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual([])
  })
})
