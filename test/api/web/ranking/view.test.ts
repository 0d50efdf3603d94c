import { once } from 'node:events'
import { createServer } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import express from 'express'
import { afterAll, expect, it } from 'vitest'
import { cronSchedule } from '../../../../api/process/cron-schedule.ts'
import { retainSnapshots } from '../../../../api/datasets/snapshots/retained.ts'
import { catalogueOf } from '../../../../api/datasets/snapshots/catalogue.ts'
import type { CurrentSnapshot } from '../../../../api/datasets/snapshots/current.ts'
import { openSnapshot, type Snapshot } from '../../../../api/datasets/snapshots/open-snapshot.ts'
import { parsePageParameters } from '../../../../api/web/ranking/page-query.ts'
import { rankingView } from '../../../../api/web/ranking/view.ts'
import { createViews, serveView } from '../../../../api/web/views.ts'
import { memoryLog } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('the page queries over its own connections, once for each view, for a HEAD as for a GET', async () => {
  const dataDir = folders.make()
  const folder = await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: '2026-11-19',
    apps: [{ id: 1, name: 'The only app' }],
    daily: [{ day: '2026-11-19', app: 1, tokens: 7 }],
  })
  const opened = await openSnapshot(folder)
  let asked = 0
  const refuse = () => Promise.reject(new Error('These connections are for those with a key'))
  const snapshot: Snapshot = {
    ...opened,
    query: refuse,
    forPages: {
      ...opened.forPages,
      query: (sql, values) => {
        asked += 1
        return opened.forPages.query(sql, values)
      },
    },
  }
  const { log } = memoryLog()
  const retained = retainSnapshots(dataDir, log)
  const current: CurrentSnapshot = {
    facts: () => snapshot,
    fault: () => undefined,
    use: (work) => work(snapshot),
    close: () => snapshot.close(),
  }
  const catalogue = catalogueOf(retained)
  let listed = 0
  const views = createViews({
    catalogue: {
      ...catalogue,
      list: () => {
        listed += 1
        return catalogue.list()
      },
    },
    schedule: cronSchedule('0 2 * * *'),
    clock: () => new Date('2026-11-20T12:00:00Z'),
    origin: 'http://127.0.0.1:3000',
  })
  const page = serveView(views, { current, retained }, rankingView(catalogue))
  const app = express()
  app.route('/').get(page)
  const server = createServer(app)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`

  const head = await fetch(origin, { method: 'HEAD' })
  expect(head.status).toBe(200)
  const queries = asked
  expect(queries).toBeGreaterThan(0)
  const whole = await fetch(origin)
  for (const name of ['Content-Type', 'ETag', 'Content-Encoding'])
    expect(head.headers.get(name)).toBe(whole.headers.get(name))
  expect(await whole.text()).toContain('The only app')
  expect(asked).toBe(queries)

  const visitors = await Promise.all(
    Array.from({ length: 200 }, async (_, visitor) => {
      const search = visitor % 2 === 0 ? '' : '?days=7'
      return (await fetch(`${origin}/${search}`)).status
    }),
  )
  expect(new Set(visitors)).toEqual(new Set([200]))
  // The view of seven days queries once for any number of visitors.
  expect(asked).toBeLessThanOrEqual(queries + 10)

  // Concurrent requests share one reading of the snapshot folders; later ones read them again.
  const ask = async () => {
    const question = { view: rankingView(catalogue), asked: parsePageParameters('') }
    await views.get(snapshot, { ...question, isCurrent: true, encoding: 'br' })
  }
  await ask()
  await nextTurn()
  listed = 0
  await Promise.all(Array.from({ length: 20 }, ask))
  expect(listed).toBe(1)
  await nextTurn()
  await ask()
  expect(listed).toBe(2)

  server.close()
  await snapshot.close()
})
