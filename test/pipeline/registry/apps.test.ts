/** CONTRACT 9: `npm run apps`: an operator's decisions about apps, and their effect on the next nightly run. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { apps as runApps } from '../../../pipeline/apps.ts'
import { decide as appendDecision, type AppState } from '../../../pipeline/registry/decide.ts'
import { readConfig } from '../../../pipeline/config.ts'
import { makeFolder } from '../../support/folders.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { queryCurrent, withRegistry, writeRaw } from '../../support/pipeline/nightly.ts'
import { runCommandLine, startProgram, UNPRIVILEGED } from '../../support/processes.ts'

const AS_OF = '2026-01-10T02:00:00Z'
const BECAUSE = ['--reason', 'asked for by its owner']
const THREE = [
  '1,One,public,game|legal,,2025-01-01',
  '2,Two,public,,,2025-01-01',
  '3,Three,private,,,2025-01-01',
]

const folder = (...registry: readonly string[]) =>
  withRegistry(registry, '2026-01-05', ['1,1,0', '2,2,0', '3,3,0'])

function apps(dataDir: string, ...args: readonly string[]) {
  return runCommandLine(runApps, args, { DATA_DIR: dataDir })
}

/** A decision that must succeed. */
async function decide(dataDir: string, ...args: readonly string[]): Promise<void> {
  const { code, stderr } = await apps(dataDir, ...args)
  expect(stderr).toContain('It takes effect with the next nightly run')
  expect(code).toBe(0)
}

async function listed(dataDir: string, text = ''): Promise<unknown> {
  const { code, stdout } = await apps(dataDir, 'list', '--json', text)
  expect(code).toBe(0)
  return JSON.parse(stdout)
}

/** The cells of a printed table, without the line under its header. */
function cellsOf(stdout: string): string[][] {
  const lines = stdout.trimEnd().split('\n')
  return lines.map((line) => line.trim().split(/ {2,}/))
}

function decisionFiles(dataDir: string): string[] {
  const names = readdirSync(join(dataDir, 'raw', 'apps'))
  return names.filter((name) => name !== 'registry.csv' && !name.startsWith('.'))
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
    expect((await published(dataDir)).map((row) => row['prompt_tokens'])).toEqual(['6'])

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

  it.each([
    ['is dated in the future', '1,One,public,,,2999-12-31T23:59:59.999999Z', '3000-01-01T00:00:00.000Z'],
    ['has no time', '1,One,public,,,soon', ''],
    ['has no list of tags', '1,One,public,[game,,2025-01-01', ''],
    ['is an alias', '1,One,public,,2,2025-01-01', 'App 1 is an alias: its usage counts for app 2'],
  ])('outrank a row that %s, with a message', async (_, row, message) => {
    const dataDir = folder(row, '2,Two,public,,,2025-01-01')
    const { code, stderr } = await apps(dataDir, 'hide', '1', ...BECAUSE)
    expect(code).toBe(0)
    expect(stderr).toContain(message)
    expect(await listed(dataDir, 'One')).toMatchObject([{ visibility: 'hidden' }])
  })

  it('keep ids past 2^53 exactly', async () => {
    const [big, most] = ['9007199254740993', '9223372036854775807'] as const
    const dataDir = folder(`${big},Big,public,,,2025-01-01`, `${most},Most,public,,,2025-01-01`)
    await decide(dataDir, 'alias', big, '--of', most, ...BECAUSE)
    expect(await listed(dataDir)).toMatchObject([
      { app_id: big, alias_of: most },
      { app_id: most, alias_of: null },
    ])
  })

  it('taken at the same time are all kept, do not undo each other, and are shown by history', async () => {
    const dataDir = folder(...THREE)
    const decisions = [
      ['hide', '1'],
      ['rename', '1', 'Renamed'],
      ['tag', '1', '--add', 'cli-agent'],
    ]
    const ended = decisions.map((args) => {
      const command = [...args, '--reason', args.join(' ')]
      return startProgram('pipeline/apps.ts', command, { DATA_DIR: dataDir }).ended
    })
    expect((await Promise.all(ended)).map(({ code }) => code)).toEqual([0, 0, 0])
    const [delivered, ...taken] = JSON.parse((await apps(dataDir, 'history', '1', '--json')).stdout)
    expect(delivered).toMatchObject({ action: null, reason: null, file: 'apps/registry.csv' })
    expect(taken.map(({ reason }: { reason: string }) => reason).toSorted()).toEqual(
      decisions.map((args) => args.join(' ')),
    )
    expect(cellsOf((await apps(dataDir, 'history', '01')).stdout)).toHaveLength(5)
    const subcategories = ['cli-agent', 'game', 'legal']
    expect(await listed(dataDir, '1')).toMatchObject([
      { app_name: 'Renamed', visibility: 'hidden', subcategories },
    ])
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
    const row = { app_id: 1_000_000_000, app_name: 'A\tB', visibility: 'public', subcategories: ['game'] }
    const chat = [
      { ...row, updated_at: '2026-01-02', referer: 'app.example/x' },
      { ...row, updated_at: '2026-01-01', referer: 'old.example' },
    ]
    writeRaw(dataDir, 'apps/chat.ndjson', chat.map((each) => JSON.stringify(each)).join('\n'))
    await decide(dataDir, 'hide', '1000000000', ...BECAUSE)
    const [header, one, , , chatted, ...more] = cellsOf((await apps(dataDir, 'list')).stdout)
    expect(header).toEqual('app_id app_name visibility subcategories alias_of referer updated_at'.split(' '))
    expect(one).toEqual(['1', 'One', 'public', '["game","legal"]', '2025-01-01T00:00:00.000Z'])
    expect(chatted?.slice(0, -1)).toEqual(['1000000000', 'A B', 'hidden', '["game"]', 'app.example/x'])
    expect(more).toEqual([])
  })

  it('filters by a text in id or name, in any case; skips a row without an id, and warns that it stops the run', async () => {
    const dataDir = folder(...THREE, 'four,Four,public,,,2025-01-01')
    const cases = { '': ['1', '2', '3'], t: ['2', '3'], TWO: ['2'], 3: ['3'], nobody: [] }
    for (const [text, ids] of Object.entries(cases)) {
      expect(await listed(dataDir, text)).toMatchObject(ids.map((app_id) => ({ app_id })))
    }
    expect((await apps(dataDir, 'list')).stderr).toContain(
      'nightly run: 1; the first: apps/registry.csv, row 5: app_id is not an integer',
    )
  })
})

describe('wrong use', () => {
  const fresh = folder(...THREE)

  it.each([
    { args: [], remedy: 'list, history, rename' },
    { args: ['delete', '1'], remedy: 'list, history, rename' },
    { args: ['hide', '1'], remedy: '--reason: Expected one line' },
    { args: ['hide', '1', '--reason', ' '], remedy: '--reason: Expected one line' },
    { args: ['hide', '1', '--reason', 'a\nb'], remedy: '--reason: Expected one line' },
    { args: ['hide', ...BECAUSE], remedy: 'Expected ID...' },
    { args: ['hide', 'One', ...BECAUSE], remedy: '"One" is not the id of an app' },
    { args: ['hide', '1', '77', ...BECAUSE], remedy: 'No app has the id 77' },
    { args: ['hide', '1', '--because', 'x'], remedy: '--help' },
    { args: ['rename', '1', ...BECAUSE], remedy: 'Expected ID NAME, not "1"' },
    { args: ['rename', '1', '  ', ...BECAUSE], remedy: 'one line' },
    { args: ['rename', '1', 'a\u2028b', ...BECAUSE], remedy: 'one line' },
    {
      args: ['rename', '1', '\u200B', ...BECAUSE],
      remedy: 'registry: decision about app 1, row 1: app_name is empty',
    },
    { args: ['tag', '1', ...BECAUSE], remedy: '--add SUBCATEGORY' },
    { args: ['tag', '1', '--add', 'coding', ...BECAUSE], remedy: '--add: Expected cli-agent' },
    { args: ['alias', '1', ...BECAUSE], remedy: '--of ID' },
    { args: ['alias', '1', '--of', '2', '--none', ...BECAUSE], remedy: '--of ID' },
    { args: ['alias', '1', '--of', '1', ...BECAUSE], remedy: '1 -> 1' },
    { args: ['alias', '1', '--of', '99', ...BECAUSE], remedy: 'unknown app 99' },
    { args: ['alias', '1', '2', '--of', '2', ...BECAUSE], remedy: '2 -> 2' },
    { args: ['history', '99'], remedy: 'list shows the ids' },
    { args: ['history', 'One'], remedy: '"One" is not the id of an app' },
    { args: ['history'], remedy: 'Expected ID: see npm run -s apps -- history --help' },
  ])('$args exits 2, names the remedy and writes nothing', async ({ args, remedy }) => {
    const { code, stdout, stderr } = await apps(fresh, ...args)
    expect(stderr).toContain(remedy)
    expect(stderr).not.toMatch(/^\s+at /m)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(decisionFiles(fresh)).toEqual([])
  })

  it('a decision that closes a cycle of aliases is rejected', async () => {
    const dataDir = folder(...THREE)
    await decide(dataDir, 'alias', '1', '--of', '2', ...BECAUSE)
    await decide(dataDir, 'alias', '2', '--of', '3', ...BECAUSE)
    const ended = await apps(dataDir, 'alias', '3', '--of', '1', ...BECAUSE)
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining('1 -> 2 -> 3 -> 1') })
    expect(decisionFiles(dataDir)).toHaveLength(2)
  })

  it('a missing registry is reported; an unreadable file and a lock that is none are named, with exit code 1', async () => {
    const hide = ['hide', '1', ...BECAUSE]
    for (const args of [['list'], hide]) {
      const empty = await apps(makeFolder(), ...args)
      expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no app registry') })
    }
    const dataDir = folder(...THREE)
    const path = join(dataDir, 'raw', 'apps', '.decisions.lock')
    mkdirSync(path)
    const locked = await apps(dataDir, ...hide)
    expect(locked).toMatchObject({ code: 1, stderr: expect.stringContaining(`${path} cannot be locked: `) })
    rmdirSync(path)
    chmodSync(dirname(path), 0o555)
    const start = startProgram('pipeline/apps.ts', hide, { DATA_DIR: dataDir }, UNPRIVILEGED)
    expect(await start.ended).toMatchObject({ code: 1, stderr: expect.stringContaining('permission denied') })
    writeRaw(dataDir, 'apps/broken.parquet', 'not parquet')
    const broken = await apps(dataDir, 'list')
    expect(broken).toMatchObject({ code: 1, stderr: expect.stringContaining('broken.parquet') })
  })

  it('a decision exits with 75 if another one takes too long', async () => {
    const dataDir = folder(...THREE)
    using other = new DatabaseSync(join(dataDir, 'raw', 'apps', '.decisions.lock'))
    other.exec('BEGIN EXCLUSIVE')
    const decision = { action: 'hide', ids: ['1'], reason: 'x', change: (app: AppState) => app }
    const nothing = () => undefined
    const dependencies = { config: readConfig({ DATA_DIR: dataDir }), now: () => new Date() }
    const late = appendDecision({ ...dependencies, print: nothing, note: nothing }, decision, 50)
    const error: unknown = await late.catch((thrown: unknown) => thrown)
    const message = expect.stringContaining('Another decision about the apps is under way')
    expect(error).toMatchObject({ exitCode: 75, message })
  })
})
