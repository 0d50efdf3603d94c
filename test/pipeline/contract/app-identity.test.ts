/** CONTRACT 7: apps without an id get one that follows from their identity, the same everywhere. */
import { describe, expect, it } from 'vitest'
import { appIdOf, appNamed, FIRST_APP_ID } from '../../../pipeline/contract/app-identity.ts'

describe('the id of an identity', () => {
  it('never changes, from 1000000000 on and below 2^53', () => {
    // Published data contains these ids.
    expect(appIdOf('app.example')).toBe(1_527_876_024_117_272)
    const ids = Array.from({ length: 20_000 }, (_, index) => appIdOf(`app-${index}.example`))
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) {
      expect(Number.isSafeInteger(id)).toBe(true)
      expect(id).toBeGreaterThanOrEqual(FIRST_APP_ID)
    }
  })
})

describe('the app of a text', () => {
  it.each([
    ['Claude Code', 'local:claude code', 'Claude Code'],
    ['  claude\u00A0 code ', 'local:claude code', 'claude code'],
    ['app.example', 'local:app.example', 'app.example'],
    ['https://www.App.example/', 'app.example', 'app.example'],
    ['http://app.example/tool?token=1', 'app.example/tool', 'app.example'],
  ])('%j is %j', (text, identity, app_name) => {
    expect(appNamed(text)).toEqual({ app_id: appIdOf(identity), identity, app_name })
  })

  it.each(['', '  ', '\u202E\u200B', 'http://localhost:3000', 'https://192.168.0.7/app'])(
    'is undefined for %j',
    (text) => {
      expect(appNamed(text)).toBeUndefined()
    },
  )
})
