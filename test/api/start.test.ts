/** `npm ci && npm start` on a fresh machine: the sample is published and served. */
import { afterAll, expect, it } from 'vitest'
import { rankingsSchema, startAll, tryIt, until } from '../support/api.ts'
import { TemporaryFolders } from '../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('npm start on an empty folder publishes the sample and prints a request that answers', async () => {
  const dataDir = folders.make()
  const { welcome, output, child, ended } = await startAll({ DATA_DIR: dataDir })
  expect(welcome).toMatch(/^API key: +sk-inference-[\w-]{43} /m)
  await until(() => output.stdout.includes('Ready: '))
  expect(output.stdout).toMatch(/Try it: .*\nReady: open http:\/\/127\.0\.0\.1:\d+\/ in a browser\..*\n$/)
  // The run is one line, beside the note about the sample.
  const told = output.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
  expect(told).toEqual([expect.stringContaining('sample'), expect.stringMatching(/^run {6}215 apps, .* s$/)])
  const response = await tryIt(welcome)
  expect(response.status).toBe(200)
  expect(rankingsSchema.parse(await response.json()).data).toHaveLength(5)
  child.kill('SIGTERM')
  expect(await ended).toMatchObject({ code: 0 })

  const second = await startAll({ DATA_DIR: dataDir })
  expect(second.welcome).not.toContain('sk-')
  expect(second.welcome).toContain('Bearer <API_KEY>')
  expect(second.welcome).toContain('npm run -s keys -- create')
  expect((await tryIt(second.welcome)).status).toBe(401)
  second.child.kill('SIGTERM')
  expect(await second.ended).toMatchObject({ code: 0 })
})
