import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { UNATTRIBUTED_APP_ID } from '../../../../pipeline/contract/dataset.ts'
import { appIdOf, FIRST_APP_ID } from '../../../../pipeline/contract/app-identity.ts'
import { MAX_NEW_APPS_PER_DAY } from '../../../../api/chat/apps/app-store.ts'
import { openAttribution } from '../../../../api/chat/apps/attribution.ts'
import { openUsageLog } from '../../../../api/chat/records/usage-log.ts'
import { OperatorError } from '../../../../api/http/errors.ts'
import { openStore } from '../../../../api/store/open-store.ts'
import { memoryLog, until } from '../../../support/api.ts'
import { runAt } from '../../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'
import { usageRecord } from '../../../support/chat/usage-records.ts'

const NOON = new Date('2026-03-10T12:00:00Z')

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

interface Wanted {
  readonly now?: Date
  readonly visibility?: 'public' | 'hidden'
}

function headersOf(address: string, title?: string, categories?: string): Record<string, string> {
  return {
    'http-referer': address,
    ...(title === undefined ? {} : { 'x-title': title }),
    ...(categories === undefined ? {} : { 'x-app-categories': categories }),
  }
}

/** Attribution as in one process of the service: its own store over the shared folder. */
async function open(dataDir: string, { now = NOON, visibility = 'public' }: Wanted = {}) {
  const { log, messages } = memoryLog()
  const store = await openStore({ DATA_DIR: dataDir }, now)
  let time = now
  const options = { dataDir, store, visibility, log, clock: () => time }
  const attribution = await openAttribution(options).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  return {
    store,
    messages,
    errors: () => messages().filter(({ level }) => level === 'error'),
    setTime: (later: Date) => (time = later),
    attribute: (address: string, title?: string, categories?: string) =>
      attribution.attribute(headersOf(address, title, categories))(true),
    attributeRefused: (address: string, title?: string, categories?: string) =>
      attribution.attribute(headersOf(address, title, categories))(false),
    /** A request that has begun; call the result when it ends. */
    begin: (address: string, title?: string) => attribution.attribute(headersOf(address, title)),
    async close() {
      await attribution.close()
      await store.close()
    },
  }
}

const rowSchema = z.looseObject({ app_id: z.int(), app_name: z.string(), updated_at: z.string() })

function registryRows(dataDir: string) {
  return readFileSync(join(dataDir, 'raw', 'apps', 'chat.ndjson'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => rowSchema.parse(JSON.parse(line)))
}

describe('openAttribution', () => {
  it('registers an app with its first request and finds it in all later ones', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const id = await service.attribute('https://www.app.example/', 'The App', 'game,roleplay')
    expect(id).toBe(appIdOf('app.example'))
    expect(id).toBeGreaterThanOrEqual(FIRST_APP_ID)
    expect(await service.attribute('http://app.example', 'The App')).toBe(id)
    const other = await service.attribute('https://other.example')
    await service.close()
    const rows = registryRows(dataDir).toSorted((a) => (a.app_id === id ? -1 : 1))
    expect(rows).toEqual([
      {
        app_id: id,
        app_name: 'The App',
        visibility: 'public',
        subcategories: ['game', 'roleplay'],
        alias_of: null,
        updated_at: '2026-03-10T12:00:00.000Z',
        referer: 'app.example',
        registered_at: '2026-03-10T12:00:00.000Z',
        revision: 0,
      },
      expect.objectContaining({ app_id: other, app_name: 'other.example', subcategories: [] }),
    ])

    const again = await open(dataDir)
    expect(await again.attribute('https://app.example')).toBe(id)
    await again.close()
  })

  it('writes an app to the file before any request counts for it', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const other = await open(dataDir)
    const attributed = async (process: typeof service, address: string) => {
      const app_id = await process.attribute(address)
      expect(registryRows(dataDir)).toContainEqual(expect.objectContaining({ app_id }))
    }
    await attributed(service, 'https://first.example')
    await attributed(service, 'https://second.example')
    const addresses = Array.from({ length: 40 }, (_, index) => `https://app-${index % 20}.example`)
    await Promise.all(
      addresses.flatMap((address) => [service, other].map((each) => attributed(each, address))),
    )
    await service.close()
    await other.close()
    expect(registryRows(dataDir)).toHaveLength(22)
    expect(readdirSync(join(dataDir, 'raw', 'apps'))).toEqual(['chat.ndjson'])
  })

  it('writes no registry while no app is known', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    expect(await service.attribute('not an address', 'Title')).toBe(UNATTRIBUTED_APP_ID)
    await service.close()
    expect(readdirSync(dataDir)).not.toContain('raw')
  })

  it('neither registers nor changes an app for a request that no provider served', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    expect(await service.attributeRefused('https://spam.example', 'Buy')).toBe(UNATTRIBUTED_APP_ID)
    const id = await service.attribute('https://app.example')
    expect(await service.attributeRefused('https://app.example', 'Buy', 'game')).toBe(id)
    const other = await open(dataDir)
    expect(await other.attributeRefused('https://app.example', 'Buy', 'game')).toBe(id)
    await other.close()
    await service.close()
    expect(registryRows(dataDir)).toEqual([
      expect.objectContaining({ app_id: id, app_name: 'app.example', subcategories: [], revision: 0 }),
    ])
  })

  it('names an app without a title by its host, since a path may hold personal data', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const id = await service.attribute('https://app.example:8443/users/john.doe/')
    expect(await service.attribute('https://app.example:8443/users/jane.doe')).not.toBe(id)
    await service.attribute('https://app.example:8443/users/jane.doe', 'Titled')
    await service.close()
    expect(registryRows(dataDir).map(({ app_name }) => app_name)).toEqual(['app.example:8443', 'Titled'])
  })

  it('names an app by its first title, not by later ones', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const id = await service.attribute('https://app.example')
    await service.attribute('https://app.example', 'First')
    await service.attribute('https://app.example', 'Second')
    await service.close()
    expect(registryRows(dataDir)).toEqual([
      expect.objectContaining({ app_id: id, app_name: 'First', updated_at: '2026-03-10T12:00:00.001Z' }),
    ])
  })

  it('collects at most ten categories', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const pairs = [
      'game,roleplay',
      'legal,game',
      'cli-agent,video-gen',
      'image-gen,audio-gen',
      'general-chat,cloud-agent',
    ]
    for (const pair of [...pairs, 'creative-writing,ide-extension', 'writing-assistant']) {
      await service.attribute('https://app.example', undefined, pair)
    }
    await service.close()
    expect(registryRows(dataDir)[0]?.['subcategories']).toEqual([
      'game',
      'roleplay',
      'legal',
      'cli-agent',
      'video-gen',
      'image-gen',
      'audio-gen',
      'general-chat',
      'cloud-agent',
      'creative-writing',
    ])
  })

  it('registers new apps as hidden if the setting is hidden', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir, { visibility: 'hidden' })
    await service.attribute('https://app.example')
    await service.close()
    expect(registryRows(dataDir)[0]?.['visibility']).toBe('hidden')
  })

  it('gives an app one id, whichever process sees it first', async () => {
    const dataDir = folders.make()
    const services = await Promise.all([open(dataDir), open(dataDir), open(dataDir)])
    const addresses = Array.from({ length: 40 }, (_, index) => `https://app-${index}.example`)
    const ids = await Promise.all(
      services.map((service, turn) =>
        Promise.all(
          addresses.map((_, index) => service.attribute(addresses[(index + 13 * turn) % 40] ?? '')),
        ),
      ),
    )
    const byAddress = addresses.map((_, index) => ids.map((row, turn) => row[(index - 13 * turn + 80) % 40]))
    for (const row of byAddress) expect(new Set(row).size).toBe(1)
    expect(new Set(ids.flat()).size).toBe(40)
    await Promise.all(services.map((service) => service.close()))
    expect(registryRows(dataDir)).toHaveLength(40)
  })

  it('limits the new apps of a day, but not known ones', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const first = await service.attribute('https://app-0.example')
    const others = Array.from(
      { length: MAX_NEW_APPS_PER_DAY - 1 },
      (_, index) => `https://app-${index + 1}.example`,
    )
    await Promise.all(others.map((address) => service.attribute(address)))
    expect(await service.attribute('https://one-too-many.example')).toBe(UNATTRIBUTED_APP_ID)
    expect(await service.attribute('https://another.example')).toBe(UNATTRIBUTED_APP_ID)
    expect(await service.attribute('https://app-0.example')).toBe(first)
    expect(service.messages().filter(({ level }) => level === 'warn')).toHaveLength(1)
    service.setTime(new Date('2026-03-11T00:00:00Z'))
    expect(await service.attribute('https://one-too-many.example')).toBe(appIdOf('one-too-many.example'))
    await service.close()
  })

  it('writes titles of any characters in a form that the pipeline reads', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const text = fc.string({ unit: 'binary' })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(text, text), { minLength: 20 }), async (apps) => {
        const addresses = apps.map(
          ([path, title]) => [encodeURIComponent(path.toWellFormed()), title] as const,
        )
        await Promise.all(
          addresses.map(([path, title]) => service.attribute(`https://app.example/${path}`, title)),
        )
      }),
      { numRuns: 10 },
    )
    await service.attribute('https://plain.example', '"quoted", |\\ and <b>bold</b>')
    await service.close()
    const rows = registryRows(dataDir)
    writeRaw(
      dataDir,
      'usage/date=2026-03-10/rows.csv',
      `ts,app_id,prompt_tokens,completion_tokens\n${rows.map(({ app_id }) => `2026-03-10,${app_id},1,0\n`).join('')}`,
    )
    await runAt(dataDir, '2026-03-11T02:00:00Z')
    const published = await queryCurrent(dataDir, 'SELECT app_id, app_name FROM apps ORDER BY app_id')
    expect(published).toEqual(rows.map(({ app_id, app_name }) => ({ app_id: String(app_id), app_name })))
  })
})

describe('a decision of an operator', () => {
  it('outranks later requests of the app', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const app_id = await service.attribute('https://app.example')
    await service.attribute('https://other.example')
    const decided = { app_name: 'Hidden', visibility: 'hidden', updated_at: '2026-03-10T12:00:01.000Z' }
    writeRaw(dataDir, 'apps/decision.ndjson', `${JSON.stringify({ app_id, ...decided })}\n`)
    service.setTime(new Date('2026-03-10T18:00:00Z'))
    await service.attribute('https://app.example', 'A new title', 'game')
    await service.close()
    writeRaw(
      dataDir,
      'usage/date=2026-03-10/rows.csv',
      `ts,app_id,prompt_tokens,completion_tokens\n2026-03-10,${app_id},1,0\n`,
    )
    await runAt(dataDir, '2026-03-11T02:00:00Z')
    expect(await queryCurrent(dataDir, 'SELECT app_name FROM apps')).toEqual([{ app_name: 'other.example' }])
  })
})

describe('when something fails', () => {
  it('a request counts for a known app though the store fails after it began', async () => {
    const dataDir = folders.make()
    const before = await open(dataDir)
    const id = await before.attribute('https://app.example')
    await before.close()
    const service = await open(dataDir)
    const ends = service.begin('https://app.example')
    const endsWithTitle = service.begin('https://app.example', 'A title')
    await service.store.script('ALTER TABLE apps RENAME TO gone')
    expect(await ends(true)).toBe(id)
    expect(await endsWithTitle(true)).toBe(id)
    await service.store.script('ALTER TABLE gone RENAME TO apps')
    await service.close()
  })

  it('a request does not wait again for a store that was unavailable when it began', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    await service.store.script('ALTER TABLE apps RENAME TO gone')
    const ends = service.begin('https://app.example')
    await service.store.script('ALTER TABLE gone RENAME TO apps')
    expect(await ends(true)).toBe(UNATTRIBUTED_APP_ID)
    expect(await service.attribute('https://app.example')).toBe(appIdOf('app.example'))
    await service.close()
  })

  it('a request is unattributed instead of rejected, and known apps stay known', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const id = await service.attribute('https://app.example')
    await service.store.script('ALTER TABLE apps RENAME TO gone')
    expect(await service.attribute('https://new.example')).toBe(UNATTRIBUTED_APP_ID)
    expect(await service.attribute('https://newer.example')).toBe(UNATTRIBUTED_APP_ID)
    expect(await service.attribute('https://app.example', 'A title')).toBe(id)
    const failures = service.errors().filter(({ msg }) => String(msg).startsWith('apps cannot be registered'))
    expect(failures).toHaveLength(1)
    await service.store.script('ALTER TABLE gone RENAME TO apps')
    expect(await service.attribute('https://new.example')).toBe(appIdOf('new.example'))
    await service.close()
  })

  it('a registry that cannot be written is written later', async () => {
    const dataDir = folders.make()
    mkdirSync(join(dataDir, 'raw'))
    writeFileSync(join(dataDir, 'raw', 'apps'), 'in the way')
    await expect(open(dataDir)).rejects.toThrow(OperatorError)
    rmSync(join(dataDir, 'raw', 'apps'))
    const service = await open(dataDir)
    writeFileSync(join(dataDir, 'raw', 'apps'), 'in the way')
    await service.attribute('https://app.example')
    await until(() => service.errors().length > 0)
    rmSync(join(dataDir, 'raw', 'apps'))
    await service.close()
    expect(registryRows(dataDir)).toHaveLength(1)
  })

  it('a store that was lost gets its ids back from the file', async () => {
    const dataDir = folders.make()
    const before = await open(dataDir)
    const ids = [
      await before.attribute('https://a.example', 'A', 'game'),
      await before.attribute('https://b.example'),
    ]
    await before.close()
    for (const name of readdirSync(dataDir))
      if (name.startsWith('service.sqlite')) rmSync(join(dataDir, name))

    const after = await open(dataDir)
    expect(await after.attribute('https://c.example')).toBe(appIdOf('c.example'))
    expect([await after.attribute('https://a.example'), await after.attribute('https://b.example')]).toEqual(
      ids,
    )
    await after.close()
    const names = registryRows(dataDir).map(({ app_name }) => app_name)
    expect(names.toSorted()).toEqual(['A', 'b.example', 'c.example'])
  })

  it('an app that a dead process registered is written to the file at the next start', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    await service.attribute('https://app.example')
    await service.close()
    rmSync(join(dataDir, 'raw'), { recursive: true })
    await (await open(dataDir)).close()
    expect(registryRows(dataDir)).toHaveLength(1)
  })

  it('a damaged registry file stops the start and is named', async () => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'apps/chat.ndjson', '{"app_id":1}\n')
    await expect(open(dataDir)).rejects.toThrow(/chat\.ndjson is not as this service writes it/)
  })
})

// The apps' own requests are in circle.test.ts; here the records are made by hand.
describe('the registry file', () => {
  it('is valid input of a run: its apps, also local ones, are ranked, and requests without an app are not', async () => {
    const dataDir = folders.make()
    const service = await open(dataDir)
    const usage = await openUsageLog(dataDir, { log: memoryLog().log, clock: () => NOON })
    const send = async (address: string, title: string, prompt_tokens: number, completion_tokens: number) => {
      const app_id = await service.attribute(address, title, 'cli-agent')
      await usage.record(usageRecord({ app_id, prompt_tokens, completion_tokens }))
    }
    await Promise.all([
      ...Array.from({ length: 100 }, (_, index) => send('https://one.example', 'One', index, 1)),
      ...Array.from({ length: 50 }, (_, index) => send('http://localhost:3000', 'Two', 3 * index, 2)),
      ...Array.from({ length: 30 }, () => send('no address', 'Nobody', 1000, 1000)),
    ])
    await usage.close()
    await service.close()

    await runAt(dataDir, '2026-03-11T02:00:00Z')
    const ranked = await queryCurrent(
      dataDir,
      `SELECT rank, app_name, total_requests, total_tokens FROM popular('2026-03-10', '2026-03-10', category := 'coding')`,
    )
    expect(ranked).toEqual([
      { rank: '1', app_name: 'One', total_requests: '100', total_tokens: '5050' },
      { rank: '2', app_name: 'Two', total_requests: '50', total_tokens: '3775' },
    ])
  })
})
