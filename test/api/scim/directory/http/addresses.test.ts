import { describe, expect, it } from 'vitest'
import {
  addressKind,
  checkLiteralAddress,
  guardedLookup,
  isWithinReach,
  type Resolve,
} from '../../../../../api/scim/directory/http/addresses.ts'

const NOTHING = { allowLoopback: false, allowPrivate: false }
const EVERYTHING = { allowLoopback: true, allowPrivate: true }

describe('addressKind', () => {
  it.each([
    ['8.8.8.8', 'public'],
    ['172.32.0.1', 'public'],
    ['2606:4700::1111', 'public'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['10.1.2.3', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.0.1', 'private'],
    ['100.64.0.1', 'private'],
    ['fd12::1', 'private'],
    ['::ffff:192.168.0.1', 'private'],
    ['64:ff9b::a00:1', 'private'],
    ['2002:a00:1::', 'private'],
    ['64:ff9b::808:808', 'private'],
    ['64:ff9b::a9fe:a9fe', 'forbidden'],
    ['64:ff9b::7f00:1', 'forbidden'],
    ['64:ff9b::7f00:1%eth0', 'forbidden'],
    ['2002:a9fe:a9fe::', 'forbidden'],
    ['2002:a9fe:a9fe::1', 'forbidden'],
    ['2002:7f00:1::', 'forbidden'],
    ['::ffff:0:127.0.0.1', 'forbidden'],
    ['::ffff:0:169.254.169.254', 'forbidden'],
    ['::ffff:0:10.0.0.1', 'private'],
    ['169.254.169.254', 'forbidden'],
    ['::ffff:a9fe:a9fe', 'forbidden'],
    ['fd00:ec2::254', 'forbidden'],
    ['fd20:ce::254', 'forbidden'],
    ['100.100.100.200', 'forbidden'],
    ['64:ff9b::100.100.100.200', 'forbidden'],
    ['0.0.0.0', 'forbidden'],
    ['::', 'forbidden'],
    ['::127.0.0.1', 'forbidden'],
    ['fe80::1', 'forbidden'],
    ['224.0.0.1', 'forbidden'],
    ['255.255.255.255', 'forbidden'],
    ['::ffff:8.8.8.8', 'public'],
    ['2400:cb00::1', 'public'],
    ['64:ff9b:1::a9fe:a9fe', 'forbidden'],
    ['2001::1', 'forbidden'],
    ['2001:db8::1', 'forbidden'],
    ['3fff::1', 'forbidden'],
    ['5f00::1', 'forbidden'],
    ['100::1', 'forbidden'],
    ['100:0:0:1::1', 'forbidden'],
    ['2001:2::1', 'forbidden'],
    ['2001:20::1', 'forbidden'],
    ['4000::1', 'forbidden'],
    ['192.88.99.1', 'forbidden'],
    ['192.31.196.1', 'forbidden'],
    ['192.175.48.1', 'forbidden'],
    ['2001:4:112::1', 'forbidden'],
    ['2620:4f:8000::1', 'forbidden'],
    ['192.52.193.1', 'forbidden'],
    ['198.51.100.1', 'forbidden'],
  ])('of %s: %s', (address, kind) => {
    expect(addressKind(address)).toBe(kind)
  })
})

describe('isWithinReach', () => {
  it('allows private addresses only on request, and http only on this machine', () => {
    const reached = (protocol: string, reach: typeof NOTHING) =>
      ['8.8.8.8', '10.0.0.1', '127.0.0.1', '169.254.169.254'].filter((address) =>
        isWithinReach(address, protocol, reach),
      )
    expect(reached('https:', NOTHING)).toEqual(['8.8.8.8'])
    expect(reached('https:', { ...NOTHING, allowPrivate: true })).toEqual(['8.8.8.8', '10.0.0.1'])
    expect(reached('https:', EVERYTHING)).toEqual(['8.8.8.8', '10.0.0.1', '127.0.0.1'])
    expect(reached('http:', EVERYTHING)).toEqual(['127.0.0.1'])
    expect(reached('http:', NOTHING)).toEqual([])
  })
})

describe('checkLiteralAddress', () => {
  it.each([
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://10.0.0.1/',
  ])('refuses %s', (url) => {
    expect(() => checkLiteralAddress(new URL(url), NOTHING)).toThrow('may be connected to')
  })

  it('does not check names, which the lookup checks', () => {
    expect(() => checkLiteralAddress(new URL('https://localhost/'), NOTHING)).not.toThrow()
  })
})

describe('guardedLookup', () => {
  const resolve =
    (...addresses: string[]): Resolve =>
    (_name, _options, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )

  function look(all: boolean, found: Resolve) {
    return new Promise((done) => {
      guardedLookup('https:', NOTHING, found)('directory.example', { all }, (error, address) =>
        done(error === null ? address : error.name),
      )
    })
  }

  it('returns the allowed addresses and drops the others', async () => {
    const mixed = resolve('10.0.0.1', '8.8.8.8', '::1')
    expect(await look(true, mixed)).toEqual([{ address: '8.8.8.8', family: 4 }])
    expect(await look(false, mixed)).toBe('8.8.8.8')
  })

  it('rejects a name without an allowed address', async () => {
    expect(await look(true, resolve('127.0.0.1', 'fe80::1'))).toBe('AddressRefused')
    expect(await look(false, resolve())).toBe('AddressRefused')
  })

  it('passes on an error of the resolver', async () => {
    const failing: Resolve = (_name, _options, callback) => callback(new TypeError('no such name'), [])
    expect(await look(true, failing)).toBe('TypeError')
  })
})
