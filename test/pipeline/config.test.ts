import { describe, expect, it } from 'vitest'
import { readConfig } from '../../pipeline/config.ts'

describe('readConfig', () => {
  it('has a default for everything, DATA_DIR as absolute path', () => {
    expect(readConfig({})).toEqual({
      dataDir: expect.stringMatching(/^\/.*\/data$/),
      memory: '2GB',
      schedule: '0 2 * * *',
      publisher: 'App Rankings',
      webhook: undefined,
      successPing: undefined,
    })
  })

  it('takes an empty variable for one that is not set', () => {
    expect(readConfig({ PUBLISHER: '', NIGHTLY_SCHEDULE: '' })).toEqual(readConfig({}))
  })

  it('reports all faults at once', () => {
    const faulty = { DATA_DIR: '/tmp/what?', PIPELINE_MEMORY: 'much', NIGHTLY_SCHEDULE: 'at night' }
    expect(() => readConfig(faulty)).toThrow(/DATA_DIR[^]*PIPELINE_MEMORY[^]*NIGHTLY_SCHEDULE/)
  })
})
