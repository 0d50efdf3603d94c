import { describe, expect, it, vi } from 'vitest'
import { readConfig } from '../../pipeline/config.ts'

describe('readConfig', () => {
  it('every setting has a default, and DATA_DIR becomes absolute', () => {
    expect(readConfig({})).toEqual({
      dataDir: expect.stringMatching(/^\/.*\/data$/),
      usageSource: undefined,
      newApps: 'public',
      memory: '1.4GB',
      schedule: '0 2 * * *',
      publisher: 'App Rankings',
      publicUrl: 'http://127.0.0.1:3000',
      gates: { volumeLow: '0.5', volumeHigh: '5', rowsLost: '10' },
      webhook: undefined,
      successPing: undefined,
    })
  })

  it('settings override the defaults', () => {
    const environment = {
      DATA_DIR: '/tmp/other',
      NIGHTLY_SCHEDULE: '30 4 * * *',
      PUBLISHER: 'Another',
      GATE_VOLUME_LOW: '0.25',
      GATE_VOLUME_HIGH: '7',
      GATE_ROWS_LOST: '3',
      PIPELINE_SPILL: '20GB',
      RETENTION_DAYS: '30',
      NOTICE_WEBHOOK: 'https://example.com/hook',
      SUCCESS_PING: 'https://example.com/ping',
    }
    expect(readConfig(environment)).toMatchObject({
      dataDir: '/tmp/other',
      schedule: '30 4 * * *',
      publisher: 'Another',
      spill: '20GB',
      retentionDays: 30,
      gates: { volumeLow: '0.25', volumeHigh: '7', rowsLost: '3' },
      webhook: 'https://example.com/hook',
      successPing: 'https://example.com/ping',
    })
  })

  it.each(['NOTICE_WEBHOOK', 'SUCCESS_PING'])('%s must be an http or https address', (name) => {
    const message = `Wrong settings:\n✖ Expected an address that begins with https:// or http://\n  → at ${name}`
    expect(() => readConfig({ [name]: 'ftp://example.com' })).toThrow(message)
    expect(() => readConfig({ [name]: 'example.com/hook' })).toThrow(message)
  })

  it('an empty variable counts as not set', () => {
    expect(readConfig({ PUBLISHER: '', NIGHTLY_SCHEDULE: '' })).toEqual(readConfig({}))
  })

  it.each([
    ['GATE_VOLUME_LOW', '1', 'less than 1'],
    ['GATE_VOLUME_HIGH', '1', 'more than 1'],
    ['GATE_ROWS_LOST', '0', 'more than 0'],
    ['GATE_VOLUME_LOW', 'half', 'a number such as 0.5'],
  ])('%s must not be %s', (name, value, allowed) => {
    expect(() => readConfig({ [name]: value })).toThrow(allowed)
  })

  it.each([
    ['2GB', '1.4GB'],
    ['512 MiB', '358.4 MiB'],
    ['0.5TB', '0.35TB'],
  ])('of PIPELINE_MEMORY %s DuckDB gets %s, so that the whole process stays below it', (memory, limit) => {
    expect(readConfig({ PIPELINE_MEMORY: memory }).memory).toBe(limit)
  })

  it('a working directory with a ? in its name is rejected, since DuckDB would read options', () => {
    const cwd = vi.spyOn(process, 'cwd').mockReturnValue('/tmp/what?')
    expect(() => readConfig({})).toThrow('must not contain "?"')
    expect(() => readConfig({ DATA_DIR: '/tmp/data' })).not.toThrow()
    cwd.mockRestore()
  })

  it.each([
    [{ PORT: '4000' }, 'http://127.0.0.1:4000'],
    [{ PORT: '0' }, 'http://127.0.0.1:3000'],
    [{ PORT: 'any' }, 'http://127.0.0.1:3000'],
    [{ PORT: '4000', PUBLIC_URL: 'https://example.com/' }, 'https://example.com'],
    [{ PUBLIC_URL: 'http://Example.com:8080' }, 'http://example.com:8080'],
  ])('with %j the public address is %s', (environment, url) => {
    expect(readConfig(environment).publicUrl).toBe(url)
  })

  it.each(['0.0000001KB', '99999999999TB', '2'])('PIPELINE_MEMORY %s is rejected: not a size', (memory) => {
    expect(() => readConfig({ PIPELINE_MEMORY: memory })).toThrow(/Expected a size .*\n.* PIPELINE_MEMORY$/)
  })

  it.each(['0GB', '1MB', '63.9MB', '60MiB', '0.05GiB', '0.00006TB', '101TB', '100TiB', '9000TB', '200000GB'])(
    'PIPELINE_MEMORY %s is rejected: out of bounds',
    (memory) => {
      const message = /^Wrong settings:\n✖ Expected at least 64MB and at most 100TB\n  → at PIPELINE_MEMORY$/
      expect(() => readConfig({ PIPELINE_MEMORY: memory })).toThrow(message)
    },
  )

  it.each(['64MB', '61.1MiB', '0.064 GB', '90TiB', '100TB'])('PIPELINE_MEMORY %s is accepted', (memory) => {
    expect(() => readConfig({ PIPELINE_MEMORY: memory })).not.toThrow()
  })

  it.each([' ', 'A\nB', 'A\u2028B'])('PUBLISHER %j is rejected: not one line', (publisher) => {
    expect(() => readConfig({ PUBLISHER: publisher })).toThrow('PUBLISHER')
  })

  it.each([
    'https://example.com/ranks',
    'https://example.com/?a=b',
    'https://example.com/#a',
    'https://me@example.com',
  ])('PUBLIC_URL %s is rejected: not an origin', (url) => {
    expect(() => readConfig({ PUBLIC_URL: url })).toThrow('Expected an origin such as https://example.com')
  })

  it.each(['ftp://example.com', 'example.com'])(
    'PUBLIC_URL %s is rejected: not an http or https address',
    (url) => {
      const message =
        'Wrong settings:\n✖ Expected an origin such as https://example.com, without a path\n  → at PUBLIC_URL'
      expect(() => readConfig({ PUBLIC_URL: url })).toThrow(message)
    },
  )

  it('a value that is not a number gives a single fault', () => {
    const message = /^Wrong settings:\n✖ Expected a number such as 0.5\n  → at GATE_VOLUME_LOW$/
    expect(() => readConfig({ GATE_VOLUME_LOW: 'half' })).toThrow(message)
  })

  it('all faults of the settings are reported together', () => {
    const faulty = { DATA_DIR: '/tmp/what?', PIPELINE_MEMORY: 'much', NIGHTLY_SCHEDULE: 'at night' }
    expect(() => readConfig(faulty)).toThrow(/DATA_DIR[^]*PIPELINE_MEMORY[^]*NIGHTLY_SCHEDULE/)
  })
})
