/** CONTRACT 8: the DATA_DIR of every earlier version works with this one: its keys, its snapshots, its next night. */
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { rankingsSchema, startApi } from './support/api.ts'
import { makeFolder } from './support/folders.ts'
import { deliver, publish, queryCurrent, runCommand } from './support/pipeline/nightly.ts'
import { REPOSITORY } from './support/processes.ts'

const UPGRADES = join(REPOSITORY, 'test', 'golden', 'upgrades')
const SNAPSHOT = '20260107T020000Z'
const RETRACTED = '20260107T030000Z'

/** Keys of the versions; they open nothing else. */
const KEYS: Readonly<Record<string, string>> = {
  '1.0.0': 'sk-inference-74WnMLVY3qwXr-60znGrL9njNOGeoNjQvlF6QpKac68',
}

it('test/golden/upgrades has a DATA_DIR for each version with a key', () => {
  const archives = readdirSync(UPGRADES).filter((name) => name !== 'README.md')
  expect(archives).toEqual(Object.keys(KEYS).map((version) => `${version}.tar.gz`))
})

it.each(Object.entries(KEYS))(
  'the DATA_DIR of version %s is served unchanged, and the next night continues it',
  async (version, key) => {
    const dataDir = makeFolder()
    execFileSync('tar', ['-xzf', join(UPGRADES, `${version}.tar.gz`), '-C', dataDir])
    const expected = { app_id: 1, app_name: 'One', rank: 1, total_requests: 242, total_tokens: '1590' }
    await using api = await startApi(dataDir)
    const ranking = async (query: string) => {
      const reply = await api.get(`/datasets/app-rankings?${query}`, key)
      return { status: reply.status, body: rankingsSchema.parse(await reply.json()) }
    }
    expect((await ranking('')).body.data[0]).toEqual(expected)
    const pages = ['/', '/apps/1', '/models', '/rankings.json?series=1&sort=requests', '/?category=legal']
    for (const page of pages) expect((await fetch(`${api.origin}${page}`)).status, page).toBe(200)

    deliver(dataDir, '2026-01-07', ['1,10,0'])
    await publish(dataDir, '2026-01-08T02:00:00Z', '--accept', 'volume')
    expect(await queryCurrent(dataDir, 'SELECT count(*) AS rows FROM restatements')).toEqual([{ rows: '0' }])
    const former = await ranking(`as_of=${SNAPSHOT}`)
    expect(former).toMatchObject({ status: 200, body: { data: [expected, {}] } })
    expect(await runCommand(dataDir, 'verify', '--all')).toMatchObject({ code: 0 })

    const withdrawn = await api.get(`/datasets/app-rankings?as_of=${RETRACTED}`, key)
    expect(withdrawn.status).toBe(410)
    expect(await withdrawn.text()).toContain(`Snapshot ${RETRACTED} was retracted: Counted twice.`)
  },
)
