/**
 CONTRACT 4.6: * Two polling programs through a publication, a correction, a retraction and another publication: a mirror by `wget
 * -N`, and a feed reader. None may keep withdrawn figures.
 */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { measureFile } from '../../../../pipeline/bundle/checksums.ts'
import { retract } from '../../../../pipeline/commands/retract.ts'
import { readConfig } from '../../../../pipeline/config.ts'
import { startApi, until, type Api } from '../../../support/api.ts'
import { SILENT, runAt } from '../../../support/pipeline/in-process.ts'
import { TemporaryFolders, currentSnapshot, writeRaw } from '../../../support/pipeline/nightly.ts'
import { startProcess } from '../../../support/processes.ts'
import { hasFolder, hasProgram } from '../../../support/programs.ts'

const FILES = [
  'SHA256SUMS',
  'apps.csv',
  'rankings.csv',
  'rankings.parquet',
  'app-rankings.duckdb',
  'app_daily/month=2026-01.parquet',
]

const folders = new TemporaryFolders()
let dataDir = ''
let api: Api

beforeEach(async () => {
  dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  deliver('2026-01-06', 10)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  api = await startApi(dataDir)
})
afterEach(() => api.close())
afterAll(() => folders.removeAll())

function deliver(day: string, tokens: number): void {
  const row = `${day},1,${tokens},0`
  writeRaw(dataDir, `usage/date=${day}/rows.csv`, `ts,app_id,prompt_tokens,completion_tokens\n${row}\n`)
}

function withdraw(): Promise<void> {
  return retract.prepare(['20260108T020000Z', '--reason', 'Counted twice'])({
    config: readConfig({ DATA_DIR: dataDir }),
    progress: SILENT,
    now: () => new Date('2026-01-08T12:00:00Z'),
    print: () => undefined,
    send: async () => undefined,
  })
}

const statusSchema = z.object({ data: z.object({ as_of: z.string() }) })

/** Waits until the service serves the snapshot of this time. */
async function served(asOf: string): Promise<void> {
  await until(async () => statusSchema.parse(await (await api.get('/status')).json()).data.as_of === asOf)
}

/**
 * The events of the dataset, and the time of the current snapshot after each. The corrected figure has as many digits.
 */
const EVENTS: readonly (readonly [string, string, () => Promise<unknown>])[] = [
  ['publish', '2026-01-07T02:00:00Z', async () => undefined],
  [
    'correct',
    '2026-01-08T02:00:00Z',
    async () => {
      deliver('2026-01-06', 20)
      return await runAt(dataDir, '2026-01-08T02:00:00Z')
    },
  ],
  ['retract', '2026-01-07T02:00:00Z', withdraw],
  [
    'publish again',
    '2026-01-09T02:00:00Z',
    async () => {
      deliver('2026-01-06', 30)
      return await runAt(dataDir, '2026-01-09T02:00:00Z')
    },
  ],
]

const feedSchema = z.object({
  items: z.array(z.object({ id: z.string(), title: z.string(), summary: z.string().optional() })),
})
const parserSchema = z.custom<new () => { parseString: (text: string) => Promise<unknown> }>(
  (value) => typeof value === 'function',
)

describe('a poller has the current data after each of publish, correct, retract and publish:', () => {
  it.runIf(hasProgram('wget'))('a mirror by wget -N', async () => {
    const mirror = folders.make('mirror')
    for (const [event, asOf, happen] of EVENTS) {
      await happen()
      await served(asOf)
      // Twice: a present file is not downloaded again.
      for (let turn = 0; turn < 2; turn += 1) {
        const urls = FILES.map((name) => `${api.base}/datasets/app-rankings/snapshots/latest/${name}`)
        const wget = await startProcess('wget', ['-N', '-T', '5', '-t', '1', '-P', mirror, ...urls], {
          environment: { LC_ALL: 'C' },
        }).ended
        expect([event, wget.code, wget.code === 0 ? '' : wget.stderr]).toEqual([event, 0, ''])
        if (turn > 0) expect([event, wget.stderr.match(/saved/g)]).toEqual([event, null])
      }
      const sums = (folder: string, names: readonly string[]) =>
        names.map((name) => measureFile(folder, name).sha256)
      const current = sums(currentSnapshot(dataDir), FILES)
      const mirrored = sums(
        mirror,
        FILES.map((name) => name.replace(/^.*\//, '')),
      )
      expect([event, mirrored]).toEqual([event, current])
    }
  })

  it.runIf(hasFolder('API_CLIENTS'))('a reader of the feed', async () => {
    const Parser = parserSchema.parse(
      createRequire(join(process.env['API_CLIENTS'] ?? '', 'package.json'))('rss-parser'),
    )
    const seen = new Set<string>()
    const news: string[][] = []
    let etag = ''
    for (const [, asOf, happen] of EVENTS) {
      await happen()
      await served(asOf)
      const reply = await fetch(`${api.origin}/feed.xml`, { headers: { 'If-None-Match': etag } })
      expect(reply.status).toBe(200)
      etag = reply.headers.get('ETag') ?? ''
      const { items } = feedSchema.parse(await new Parser().parseString(await reply.text()))
      // Like a feed reader: an entry with an unknown identifier is new.
      const unseen = items.filter(({ id }) => !seen.has(id))
      news.push(unseen.map(({ title, summary }) => `${title} ${summary ?? ''}`))
      for (const { id } of unseen) seen.add(id)
      const again = await fetch(`${api.origin}/feed.xml`, { headers: { 'If-None-Match': etag } })
      expect(again.status).toBe(304)
    }
    expect(news).toEqual([
      [expect.stringContaining('2026-01-07T02:00:00Z')],
      [expect.stringMatching(/2026-01-08T02:00:00Z.*new figures: 1/)],
      [expect.stringMatching(/2026-01-08T02:00:00Z withdrawn.*Counted twice/s)],
      [expect.stringMatching(/2026-01-09T02:00:00Z.*new figures: 1/)],
    ])
  })
})
