/** CONTRACT 9: backup, loss of the machine, restore, run: the result is what the lost machine would have published. */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it, vi } from 'vitest'
import { makeKey, startProgram, startServer } from '../../../support/api.ts'
import {
  TemporaryFolders,
  currentSnapshot,
  deliver,
  publish,
  startNightly,
} from '../../../support/pipeline/nightly.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** The published files by name, without the report and the checksums, which contain times of the run. */
function published(dataDir: string): Readonly<Record<string, string>> {
  const folder = currentSnapshot(dataDir)
  const names = globSync('**/*', { cwd: folder })
    .filter((name) => statSync(join(folder, name)).isFile())
    .filter((name) => !['report.json', 'SHA256SUMS'].includes(name))
  return Object.fromEntries(
    names.toSorted().map((name) => [name, readFileSync(join(folder, name), 'base64')]),
  )
}

/** One more night, with usage of one more day. */
async function nextNight(dataDir: string): Promise<void> {
  deliver(dataDir, '2026-09-01', ['2299688,1000,10'], 'late.csv')
  await publish(dataDir, '2026-09-02T02:00:00Z', '--accept', 'volume')
}

async function rankings(dataDir: string, key: string): Promise<string> {
  const server = await startServer({ DATA_DIR: dataDir })
  const headers = { Authorization: `Bearer ${key}` }
  const reply = await fetch(`${server.origin}/api/v1/datasets/app-rankings`, { headers })
  const body = await reply.text()
  server.child.kill('SIGTERM')
  await server.ended
  return `${reply.status} ${body}`
}

it('a restored machine publishes and serves the same bytes as the lost one, to the same keys', async () => {
  const lost = folders.make()
  const first = await startNightly(lost, '--with-sample', '--as-of', '2026-09-01T02:00:00Z').ended
  expect(first.code).toBe(0)
  const server = await startServer({ DATA_DIR: lost })
  const key = await makeKey({ DATA_DIR: lost })
  const backup = join(folders.make(), 'backup')
  const made = await startProgram('commands/backup.ts', [backup], { DATA_DIR: lost }).ended
  expect(made.code).toBe(0)
  server.child.kill('SIGTERM')
  await server.ended
  await nextNight(lost)
  const expected = { files: published(lost), answer: await rankings(lost, key) }
  expect(expected.answer).toMatch(/^200 /)
  rmSync(lost, { recursive: true })

  const restored = join(folders.make(), 'restored')
  execFileSync('cp', ['-a', backup, restored])
  await nextNight(restored)
  const files = published(restored)
  expect(Object.keys(files)).toEqual(Object.keys(expected.files))
  for (const [name, content] of Object.entries(files))
    expect(content === expected.files[name], name).toBe(true)
  expect(await rankings(restored, key)).toBe(expected.answer)
})
