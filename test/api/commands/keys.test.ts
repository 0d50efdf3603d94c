/** CONTRACT 9: `npm run keys`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { keys as runKeys } from '../../../api/commands/keys.ts'
import { makeFolder } from '../../support/folders.ts'
import { runCommandLine } from '../../support/processes.ts'

function keys(dataDir: string, ...args: string[]) {
  return runCommandLine(runKeys, args, { DATA_DIR: dataDir })
}

describe('npm run keys', () => {
  it('create prints the key and nothing else on stdout; list never shows it; revoke takes the id that list shows', async () => {
    const dataDir = makeFolder()
    const made = await keys(dataDir, 'create', '--account', 'Acme Inc', '--kind', 'management')
    const key = made.stdout.trim()
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^sk-management-[\w-]{43}\n$/)])
    expect(made.stderr).not.toContain(key)
    const listed = await keys(dataDir, 'list')
    expect(listed.stdout).not.toContain(key)
    const [header = [], line = []] = listed.stdout.split('\n').map((text) => text.split('\t'))
    const row = Object.fromEntries(header.map((name, index) => [name, line[index]]))
    expect(row).toMatchObject({
      account: 'Acme Inc',
      kind: 'management',
      ends_with: key.slice(-4),
      revoked_at: '',
    })

    expect((await keys(dataDir, 'revoke', row['id'] ?? '')).code).toBe(0)
    const after = await keys(dataDir, 'list')
    expect(after.stdout).toMatch(/\t\d{4}-\d\d-\d\dT[\d:.]+Z\t\t\t\n$/)
    // The first revocation stays.
    expect((await keys(dataDir, 'revoke', row['id'] ?? '')).code).toBe(0)
    expect((await keys(dataDir, 'list')).stdout).toBe(after.stdout)
  })

  it('limit changes only the limits that it names, and off lifts one', async () => {
    const dataDir = makeFolder()
    const limits = ['--requests-per-minute', '20', '--tokens-per-day', '100000', '--expires', '2031-02-03']
    await keys(dataDir, 'create', '--account', 'a', '--kind', 'inference', ...limits)
    const shown = async () => (await keys(dataDir, 'list')).stdout.split('\n')[1]?.split('\t') ?? []
    const [id = '', ...rest] = await shown()
    expect(rest.slice(-3)).toEqual(['20', '100000', '2031-02-03T00:00:00.000Z'])
    const run = await keys(dataDir, 'limit', id, '--requests-per-minute', '5', '--expires', 'off')
    expect(run).toMatchObject({ code: 0, stdout: '' })
    expect(run.stderr).toBe(`Key ${id}: 5 requests a minute, 100000 tokens a UTC day, never expires.\n`)
    expect((await shown()).slice(-3)).toEqual(['5', '100000', ''])
  })

  it.each([
    ['', 'create --account'],
    ['make', 'expected create, list, limit, revoke'],
    // Every object has a property of this name.
    ['constructor', 'expected create, list, limit, revoke'],
    ['create --kind inference', '--account NAME'],
    ['create --account= --kind inference', '--account NAME'],
    ['create --account=a\tb --kind inference', '--account NAME'],
    ['create --account a', 'The kind is missing: use --kind inference'],
    ['create --account a --kind admin', '--kind management'],
    ['create --acount a', 'create --help'],
    ['create --account a --kind inference x', 'create --help'],
    ['create --account a --kind inference --expires soon', 'use a UTC day'],
    ['create --account a --kind inference --expires 2020-01-31', 'which is over: use a later time'],
    ['limit', 'limit takes one id, which list shows'],
    ['limit x --tokens-per-day 0', 'use a whole number from 1 to 1000000000000, or off'],
    ['limit x --requests-per-minute 1.5', 'use a whole number from 1 to 1000000, or off'],
    ['limit x --kind management', 'limit --help'],
    ['list all', 'list takes no arguments'],
    ['revoke', 'revoke takes one id, which list shows'],
  ])('exits with 2 and the remedy for %j', async (line, remedy) => {
    const run = await keys(makeFolder(), ...line.split(' ').filter(Boolean))
    expect(run).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(remedy) as unknown })
    expect(run.stderr).not.toContain('    at ')
  })

  it.each(['list', 'limit nobody', 'revoke nobody'])(
    '%s makes no store in a mistyped DATA_DIR; with one, it names an unknown id',
    async (line) => {
      const dataDir = join(makeFolder(), 'none')
      const run = await keys(dataDir, ...line.split(' '))
      expect(run).toMatchObject({ code: 2, stdout: '' })
      expect(run.stderr).toMatch(
        /^DATA_DIR ".*none" cannot be used: service\.sqlite: nothing is stored there: set/,
      )
      expect(existsSync(dataDir)).toBe(false)
      await keys(dataDir, 'create', '--account', 'a', '--kind', 'inference')
      const { stderr } = await keys(dataDir, ...line.split(' '))
      expect(stderr).toContain(line === 'list' ? '' : 'No key has the id "nobody": list shows the ids')
    },
  )
})
