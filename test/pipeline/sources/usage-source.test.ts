/** CONTRACT 10: the form of USAGE_SOURCE. */
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../pipeline/config.ts'
import { parseClusterAddress } from '../../../pipeline/sources/clickhouse.ts'

describe('USAGE_SOURCE', () => {
  it('an address states host, credentials, database and table; other settings may have the credentials', () => {
    expect(parseClusterAddress('clickhouse://u:p%40@host/db?table=t&tls=1')).toEqual({
      url: 'https://host:8123',
      user: 'u',
      password: 'p@',
      database: 'db',
      table: 't',
    })
    const settings = { USAGE_SOURCE: 'clickhouse://host:1/db?table=t', USAGE_SOURCE_PASSWORD: 'secret' }
    expect(readConfig(settings).usageSource).toMatchObject({ user: 'default', password: 'secret' })
  })

  it.each([
    'clickhouse://host/db',
    'clickhouse://host?table=t',
    'clickhouse://host/db?table=t&clutser=c',
    'clickhouse://u:100%@host/db?table=t',
    'postgres://host/db?table=t',
    'cluster',
  ])('the address %s is rejected with the expected form', (address) => {
    expect(() => readConfig({ USAGE_SOURCE: address })).toThrow(
      'clickhouse://user:password@host:port/database',
    )
  })
})
