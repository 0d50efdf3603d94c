/** CONTRACT 9: the settings of the API, with all faults reported together. */
import { describe, expect, it } from 'vitest'
import { readSettings, SETTINGS } from '../../api/config.ts'
import { pipelineSettings } from '../../pipeline/config.ts'
import { OperatorError } from '../../api/http/errors.ts'

describe('readSettings', () => {
  it('has a default for every setting', () => {
    expect(readSettings({})).toEqual({
      DATA_DIR: 'data',
      PORT: 3000,
      HOST: '127.0.0.1',
      API_MEMORY: '1GB',
      LOG_LEVEL: 'info',
      NIGHTLY_SCHEDULE: '0 2 * * *',
      SCIM_CONCURRENT_SYNCS: 16,
      SCIM_SYNC_MINUTES: 30,
      CHAT_BODY_MIB: 32,
      NEW_APPS: 'public',
    })
  })

  it('accepts an IPv6 address with the brackets of a URL', () => {
    expect([readSettings({ HOST: '[::1]' }).HOST, readSettings({ HOST: '::1' }).HOST]).toEqual(['::1', '::1'])
  })

  it('treats an empty variable as not set', () => {
    expect(readSettings({ PORT: '', DATA_DIR: '' })).toEqual(readSettings({}))
  })

  it.each([
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80a'],
    ['PORT', '3e3'],
    ['LOG_LEVEL', 'loud'],
    ['DATABASE_URL', 'mysql://user:secret@host/database'],
    ['SCIM_CONCURRENT_SYNCS', '0'],
    ['SCIM_SYNC_MINUTES', '1.5'],
    ['NIGHTLY_SCHEDULE', 'at night'],
    ['NIGHTLY_SCHEDULE', '0 2 30 2 *'],
    ['NEW_APPS', 'private'],
  ])('refuses %s=%s', (name, value) => {
    expect(() => readSettings({ [name]: value })).toThrow(name)
  })

  it('reports all faults at once', () => {
    const faulty = { PORT: 'x', LOG_LEVEL: 'y', NIGHTLY_SCHEDULE: 'z' }
    expect(() => readSettings(faulty)).toThrow(OperatorError)
    expect(() => readSettings(faulty)).toThrow(
      /PORT[^]*LOG_LEVEL[^]*NIGHTLY_SCHEDULE|LOG_LEVEL[^]*NIGHTLY_SCHEDULE[^]*PORT/,
    )
  })
})

describe('the settings', () => {
  it.each([...Object.entries(SETTINGS), ...Object.entries(pipelineSettings.shape)])(
    '%s have a description for the help',
    (_name, setting) => {
      expect(setting.description).toMatch(/\.$/)
    },
  )
})
