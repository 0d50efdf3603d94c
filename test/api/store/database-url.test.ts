/** CONTRACT 10: the form of DATABASE_URL. */
import { describe, expect, it } from 'vitest'
import { describeDatabase, isDatabaseUrl } from '../../../api/store/database-url.ts'

describe('isDatabaseUrl', () => {
  it.each([
    'postgres://user:password@host:5432/database',
    'postgresql://host/database?sslmode=verify-full',
    'postgres:///database?host=/run/postgresql',
  ])('takes %s', (url) => {
    expect(isDatabaseUrl(url)).toBe(true)
  })

  it.each([
    '',
    'data/service.sqlite',
    'mysql://host/database',
    'postgres://host',
    'postgres://host/',
    'postgres://host:port/database',
    'postgres://host/a/b',
    'postgres://host/%zz',
  ])('refuses %s', (url) => {
    expect(isDatabaseUrl(url)).toBe(false)
  })
})

describe('describeDatabase', () => {
  it.each([
    ['postgres://user:password@host:5433/database?sslmode=require', 'database "database" at host:5433'],
    ['postgres:///database?host=/run/postgresql', 'database "database" at /run/postgresql'],
    ['postgres:///database', 'database "database" at localhost'],
  ])('describes %s without user and password', (url, text) => {
    expect(describeDatabase(url)).toBe(text)
  })
})
