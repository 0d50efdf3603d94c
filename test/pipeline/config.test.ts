import { describe, expect, it } from 'vitest'
import { readConfig } from '../../pipeline/config.ts'

describe('readConfig', () => {
  it('has a default for everything, DATA_DIR as absolute path', () => {
    expect(readConfig({})).toEqual({
      dataDir: expect.stringMatching(/^\/.*\/data$/),
      memory: '2GB',
      schedule: '0 2 * * *',
      publisher: 'App Rankings',
    })
  })

  it('reports all faults at once', () => {
    const faulty = { DATA_DIR: '', PIPELINE_MEMORY: 'much', NIGHTLY_SCHEDULE: 'at night', PUBLISHER: '' }
    expect(() => readConfig(faulty)).toThrow(/DATA_DIR[^]*PIPELINE_MEMORY[^]*NIGHTLY_SCHEDULE[^]*PUBLISHER/)
  })
})
