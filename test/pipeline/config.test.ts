/** CONTRACT 9 and 10: what the settings of the pipeline mean, and which are refused with what is allowed. */
import { expect, it, vi } from 'vitest'
import { readConfig } from '../../pipeline/config.ts'

it.each([
  [{}, { dataDir: expect.stringMatching(/^\/.*\/data$/) }],
  [
    { PUBLISHER: '', NIGHTLY_SCHEDULE: '' },
    { publisher: 'App Rankings', schedule: '0 2 * * *' },
  ],
  [{ DATA_DIR: '/tmp/other' }, { dataDir: '/tmp/other' }],
  [{ NIGHTLY_SCHEDULE: '30 4 * * *' }, { schedule: '30 4 * * *' }],
  [{ PUBLISHER: 'Another' }, { publisher: 'Another' }],
  [
    { PIPELINE_SPILL: '20GB', RETENTION_DAYS: '30' },
    { spill: '20GB', retentionDays: 30 },
  ],
  // DuckDB gets a part, so that the whole process stays below.
  [{ PIPELINE_MEMORY: '2GB' }, { memory: '1.4GB' }],
  [{ PIPELINE_MEMORY: '512 MiB' }, { memory: '358.4 MiB' }],
  [{ PIPELINE_MEMORY: '0.5TB' }, { memory: '0.35TB' }],
  [{ PUBLIC_URL: 'http://Example.com:8080/' }, { publicUrl: 'http://example.com:8080' }],
  // The port of a machine is no part of a snapshot.
  [{ PORT: '4000' }, { publicUrl: 'http://127.0.0.1:3000' }],
  [{ GATE_ROWS_LOST: '3' }, { gates: { volume_low: '0.5', volume_high: '5', rows_lost: '3' } }],
  [{ NOTICE_WEBHOOK: 'https://me:secret@example.com/' }, { webhook: 'https://me:secret@example.com/' }],
  [
    { USAGE_SOURCE: 'clickhouse://u:p%40@host/db?table=t&tls=1' },
    { usageSource: { url: 'https://host:8123', user: 'u', password: 'p@', database: 'db', table: 't' } },
  ],
  [
    { USAGE_SOURCE: 'clickhouse://host:1/db?table=t', USAGE_SOURCE_PASSWORD: 'secret' },
    { usageSource: { user: 'default', password: 'secret' } },
  ],
])('%j gives %j', (environment, expected) => {
  expect(readConfig(environment)).toMatchObject(expected)
})

const ADDRESS = 'Expected an address that begins with https:// or http://'
const ORIGIN = 'Expected an origin such as https://example.com, without a path'
const SIZE = 'Expected a size such as 2GB or 512MiB'

it.each([
  ['NOTICE_WEBHOOK', 'ftp://example.com', ADDRESS],
  ['SUCCESS_PING', 'example.com/hook', ADDRESS],
  ['GATE_VOLUME_LOW', '1', 'Expected less than 1'],
  ['GATE_VOLUME_HIGH', '1', 'Expected more than 1'],
  ['GATE_ROWS_LOST', '0', 'Expected more than 0'],
  ['GATE_VOLUME_LOW', 'half', 'Expected a number such as 0.5'],
  ['PIPELINE_MEMORY', '0.0000001KB', SIZE],
  ['PIPELINE_MEMORY', '2', SIZE],
  ['PUBLISHER', ' ', 'Expected a name in one line'],
  ['PUBLISHER', 'A\u2028B', 'Expected a name in one line'],
  ['PUBLIC_URL', 'https://example.com/ranks', ORIGIN],
  ['PUBLIC_URL', 'https://example.com/?a=b', ORIGIN],
  ['PUBLIC_URL', 'https://me@example.com', ORIGIN],
  ['PUBLIC_URL', 'ftp://example.com', ORIGIN],
  ['RETENTION_DAYS', '0', 'Expected a whole number from 1 to 99999'],
  ['NIGHTLY_SCHEDULE', 'at night', 'Expected a cron expression such as "0 2 * * *"'],
  ['DATA_DIR', '/tmp/what?', 'Expected a path without "?"'],
])('%s "%s" is the only fault, with what is allowed', (name, value, allowed) => {
  expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name}: ${RegExp.escape(allowed)}$`))
})

it.each([
  'clickhouse://host/db',
  'clickhouse://host?table=t',
  'clickhouse://host/db?table=t&clutser=c',
  'clickhouse://u:100%@host/db?table=t',
  'postgres://host/db?table=t',
  'cluster',
])('USAGE_SOURCE "%s" is rejected with the expected form', (address) => {
  expect(() => readConfig({ USAGE_SOURCE: address })).toThrow('clickhouse://user:password@host:port/database')
})

it('a working directory with a ? in its name is rejected, since DuckDB would read options', () => {
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue('/tmp/what?')
  expect(() => readConfig({})).toThrow('DATA_DIR: Expected a path without "?"')
  expect(() => readConfig({ DATA_DIR: '/tmp/data' })).not.toThrow()
  cwd.mockRestore()
})
