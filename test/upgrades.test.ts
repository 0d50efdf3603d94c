/** The DATA_DIR of every earlier version works with this one: its keys, its snapshots, its next night. */
import { cpSync, globSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, expect, it } from 'vitest'
import { rankingsSchema, startApi } from './support/api.ts'
import { TemporaryFolders, publish, queryCurrent, runCommand, writeRaw } from './support/pipeline/nightly.ts'
import { REPOSITORY } from './support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const UPGRADES = join(REPOSITORY, 'test', 'golden', 'upgrades')
const SNAPSHOT = '20260107T020000Z'

/** Keys of the versions; they open nothing else. */
const KEYS: Readonly<Record<string, string>> = {
  '0.1.0': 'sk-inference-61ssBO488w8zau_YG21oYhaLkoDv71V8ipNDOzw7P2A',
}

function dataOf(version: string): string {
  const dataDir = folders.make()
  cpSync(join(UPGRADES, version), dataDir, { recursive: true })
  for (const name of globSync('**/*.gz', { cwd: dataDir })) {
    const path = join(dataDir, name)
    writeFileSync(path.slice(0, -'.gz'.length), gunzipSync(readFileSync(path)))
    rmSync(path)
  }
  symlinkSync(join('snapshots', SNAPSHOT), join(dataDir, 'current'))
  return dataDir
}

const versions = readdirSync(UPGRADES).filter((name) => name !== 'README.md')

it('test/golden/upgrades has a DATA_DIR for each version with a key', () =>
  expect(versions).toEqual(Object.keys(KEYS)))

it.each(versions)(
  'the DATA_DIR of version %s is served unchanged, and the next night continues it',
  async (version) => {
    const dataDir = dataOf(version)
    const key = KEYS[version] ?? ''
    const expected = { app_id: 1, app_name: 'One', rank: 1, total_requests: 242, total_tokens: '1590' }
    await using api = await startApi(dataDir)
    const ranking = async (query: string) => {
      const reply = await api.get(`/datasets/app-rankings?${query}`, key)
      return { status: reply.status, body: rankingsSchema.parse(await reply.json()) }
    }
    expect((await ranking('')).body.data[0]).toEqual(expected)

    const next = 'ts,app_id,prompt_tokens,completion_tokens\n2026-01-07T10:00:00Z,1,10,0\n'
    writeRaw(dataDir, 'usage/date=2026-01-07/a.csv', next)
    const night = await publish(dataDir, '2026-01-08T02:00:00Z', '--accept', 'volume')
    // Copied files are new files, so their day is counted again, with the same figures.
    expect(night.stderr).toContain('3 days counted')
    expect(await queryCurrent(dataDir, 'SELECT count(*) AS rows FROM restatements')).toEqual([{ rows: '0' }])
    const former = await ranking(`as_of=${SNAPSHOT}`)
    expect(former).toMatchObject({ status: 200, body: { data: [expected, {}] } })
    expect(await runCommand(dataDir, 'verify', '--all')).toMatchObject({ code: 0 })
  },
)
