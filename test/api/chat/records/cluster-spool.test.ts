/** Processes that share a spool lose nothing, leave each other's files alone and share out those of a dead one. */
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openSpool } from '../../../../api/chat/records/cluster-spool.ts'
import { until } from '../../../support/api.ts'
import { age, DAY, NEVER, openLog, spoolFiles, spoolFolder, spoolRoot } from '../../../support/cluster-log.ts'
import { TemporaryFolders } from '../../../support/nightly.ts'
import { startRecording } from '../../../support/recording.ts'
import { scriptClickHouse } from '../../../support/scripted-clickhouse.ts'
import { usageRecord } from '../../../support/usage-records.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let server: Awaited<ReturnType<typeof scriptClickHouse>>
beforeEach(async () => {
  server = await scriptClickHouse()
})
afterEach(() => server.close())

describe('processes that share a spool', () => {
  it.each(['away', 'there'])('one that is killed while the cluster is %s loses nothing', async (cluster) => {
    if (cluster === 'there') await server.listen()
    const dataDir = folders.make()
    const { child, acknowledged, ended } = startRecording(dataDir, { cluster: server.address })
    await until(() => acknowledged.length >= 300 && spoolFiles(dataDir).length > 0)
    if (cluster === 'there') await until(() => server.ids().length > 0)
    child.kill('SIGKILL')
    await ended

    if (cluster === 'away') await server.listen()
    age(spoolFiles(dataDir))
    const usage = openLog(dataDir, server.address)
    await until(() => spoolFiles(dataDir).length === 0)
    await usage.close()
    // A batch that was taken when the process died comes once more, which the pipeline counts once.
    expect(server.ids()).toEqual(expect.arrayContaining(acknowledged))
  })

  it('leave the files of one another alone while these live', async () => {
    const dataDir = folders.make()
    const one = openLog(dataDir, server.address)
    await one.record(usageRecord({ request_id: 'one' }))
    await until(() => one.waiting() === 1)
    const [path] = spoolFiles(dataDir)
    const other = await scriptClickHouse()
    await other.listen()
    const two = openLog(dataDir, other.address)
    await two.record(usageRecord({ request_id: 'two' }))
    await until(() => other.ids().length === 1)
    await two.record(usageRecord({ request_id: 'three' }))
    await until(() => other.ids().length === 2)
    await two.close()
    await other.close()
    expect(other.ids()).toEqual(['two', 'three'])
    expect(spoolFiles(dataDir)).toEqual([path])
    await one.close()
  })

  it('share out what a dead one left: each file is taken over by one', async () => {
    const dataDir = folders.make()
    const folder = spoolFolder(dataDir, DAY)
    mkdirSync(folder, { recursive: true })
    for (let file = 0; file < 40; file += 1) {
      const name = `chat-20260310T000000Z-4711-${String(file).padStart(8, '0')}.ndjson`
      writeFileSync(join(folder, name), `${JSON.stringify(usageRecord())}\n`)
    }
    age(spoolFiles(dataDir))
    const spools = Array.from({ length: 4 }, () => openSpool(spoolRoot(dataDir), () => new Date()))
    await Promise.all(spools.map((spool) => spool.takeOver()))
    const held = spools.flatMap((spool) => spool.files())
    expect(held.toSorted()).toEqual(spoolFiles(dataDir).toSorted())
    expect(held).toHaveLength(40)
    expect(spools.reduce((sum, spool) => sum + spool.records(), 0)).toBe(40)
  })

  it('show by a touch that they live, and notice when they were thought dead', async () => {
    const dataDir = folders.make()
    const folder = spoolFolder(dataDir, DAY)
    mkdirSync(folder, { recursive: true })
    const paths = ['a', 'b'].map((name) => join(folder, `chat-20260310T000000Z-4711-0000000${name}.ndjson`))
    for (const path of paths) writeFileSync(path, `${JSON.stringify(usageRecord())}\n`)
    age(paths)
    const [owner, other] = ['owner', 'other'].map(() => openSpool(spoolRoot(dataDir), () => new Date()))
    owner?.add(paths.map((path) => ({ path, lines: 1 })))
    await owner?.keepAlive()
    await other?.takeOver()
    expect(other?.files()).toEqual([])
    age(paths.slice(1))
    await other?.takeOver()
    expect(other?.records()).toBe(1)
    await owner?.keepAlive()
    expect(owner?.files()).toEqual(paths.slice(0, 1))
  })

  it('a file that is taken over while its owner still writes takes no further record', async () => {
    await server.listen()
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address, NEVER)
    await usage.record(usageRecord({ request_id: 'first' }))
    const [path = ''] = spoolFiles(dataDir)
    const taken = join(dirname(path), basename(path).replace('chat-', 'taken-'))
    renameSync(path, taken)
    await usage.record(usageRecord({ request_id: 'second' }))
    await usage.close()
    expect(server.ids()).toEqual(['second'])
  })

  it('remove the folders of former days when they are empty', async () => {
    await server.listen()
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address)
    const today = new Date().toISOString()
    await Promise.all([usage.record(usageRecord()), usage.record(usageRecord({ ts: today }))])
    await until(() => server.ids().length === 2 && !existsSync(spoolFolder(dataDir, DAY)))
    expect(existsSync(spoolFolder(dataDir, today.slice(0, 10)))).toBe(true)
    await usage.close()
  })
})
