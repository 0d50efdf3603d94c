/**
 * Which addresses a sync may connect to. The check stands at the moment of connecting, on the addresses that the
 * name resolved to just then, so a name that changes its meaning (DNS rebinding) gains nothing.
 */
import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

type AddressKind = 'public' | 'private' | 'loopback' | 'forbidden'

/** What the operator allowed beyond the public internet. */
export interface Reach {
  readonly allowLoopback: boolean
  readonly allowPrivate: boolean
}

/** Resolves a name to all of its addresses, as dns.lookup does. */
export type Resolve = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

const LOOPBACK = listOf('127.0.0.0/8 ::1/128')
// Beside the private networks: carrier NAT, benchmarks, and the IPv6 forms that carry an IPv4 address inside.
const PRIVATE = listOf(`
  10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 198.18.0.0/15
  fc00::/7 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 2002::/16 2001::/32`)
// Never a directory: link-local (where clouds hand out credentials), multicast, documentation, reserved.
const FORBIDDEN = listOf(`
  0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
  ::/96 fe80::/10 fec0::/10 ff00::/8 100::/64 2001:db8::/32 fd00:ec2::254/128`)

// Networks whose addresses carry an IPv4 address, and the group of 16 bits at which it begins.
const CARRIERS = [
  { list: listOf('64:ff9b::/96 ::ffff:0:0:0/96'), first: 6 },
  { list: listOf('2002::/16'), first: 1 },
]

/** A host whose addresses are all out of reach. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/** What kind of address an IP address is; of one that carries an IPv4 address inside, never a better one than that. */
export function addressKind(address: string): AddressKind {
  const inner = embeddedAddress(address)
  if (inner === undefined) return kindOf(address)
  const kind = kindOf(inner)
  return kind === 'public' ? kindOf(address) : kind === 'loopback' ? 'forbidden' : kind
}

/** The IPv4 address inside of an IPv6 address: translated (RFC 6052, RFC 2765) or 6to4 (RFC 3056). */
function embeddedAddress(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined
  const first = CARRIERS.find(({ list }) => list.check(address, 'ipv6'))?.first
  if (first === undefined) return undefined
  const groups = groupsOf(address).slice(first, first + 2)
  return groups.flatMap((group) => [group >> 8, group & 0xff]).join('.')
}

/** The eight groups of 16 bits of an IPv6 address. */
function groupsOf(address: string): readonly number[] {
  // As addresses of URLs they have hexadecimal groups alone.
  const [host = ''] = address.split('%')
  const [head = '', tail] = new URL(`http://[${host}]`).hostname.slice(1, -1).split('::')
  const [before, after] = [readGroups(head), readGroups(tail ?? '')]
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
}

function readGroups(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
}

function kindOf(address: string): AddressKind {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  // First, since it lies inside a forbidden network: ::1 in ::/96.
  if (LOOPBACK.check(address, family)) return 'loopback'
  if (FORBIDDEN.check(address, family)) return 'forbidden'
  return PRIVATE.check(address, family) ? 'private' : 'public'
}

/** Whether a connection by this protocol (`https:` or `http:`) may be made to an address. */
export function isWithinReach(address: string, protocol: string, reach: Reach): boolean {
  switch (addressKind(address)) {
    case 'public':
      return protocol === 'https:'
    case 'private':
      return protocol === 'https:' && reach.allowPrivate
    case 'loopback':
      return reach.allowLoopback
    case 'forbidden':
      return false
  }
}

/** A lookup for sockets that resolves to addresses within reach only. */
export function guardedLookup(
  protocol: string,
  reach: Reach,
  resolve: Resolve = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, [])
      const [first, ...rest] = found.filter(({ address }) => isWithinReach(address, protocol, reach))
      if (first === undefined) callback(refusal(hostname), [])
      else if (options.all === true) callback(null, [first, ...rest])
      else callback(null, first.address, first.family)
    })
  }
}

/**
 * Checks a host that is an IP address itself, which no lookup ever sees.
 * @throws {AddressRefused} when it is out of reach.
 */
export function checkLiteralAddress({ hostname, protocol }: URL, reach: Reach): void {
  const address = hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(address) !== 0 && !isWithinReach(address, protocol, reach)) throw refusal(address)
}

function refusal(host: string): AddressRefused {
  return new AddressRefused(`No address of ${host} may be connected to`)
}

function listOf(networks: string): BlockList {
  const list = new BlockList()
  for (const network of networks.trim().split(/\s+/)) {
    const [address = '', prefix = ''] = network.split('/')
    list.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4')
  }
  return list
}
