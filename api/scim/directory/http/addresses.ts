/**
 * Which addresses a sync may connect to. The check runs on connecting, on the addresses just resolved, so that DNS
 * rebinding is useless.
 */
import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

type AddressKind = 'public' | 'private' | 'loopback' | 'forbidden'

/** Addresses that the operator allowed beyond the public internet. */
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

// The special ranges that may be allowed. All others are forbidden: clouds hand out credentials on link-local
// addresses; the rest is multicast, documentation, translation or reserved.
const KINDS: Readonly<Record<string, AddressKind>> = {
  unicast: 'public',
  private: 'private',
  carrierGradeNat: 'private',
  uniqueLocal: 'private',
  loopback: 'loopback',
}

// The assigned public internet (RFC 4291, 2.4); the library calls every unnamed range unicast.
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')
// Metadata addresses of AWS, Google and Alibaba, in otherwise private ranges: they hand out credentials.
const METADATA = new Set(['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200'])

// The IPv6 ranges with an embedded IPv4 address, and the 16-bit group where it begins: translated addresses (RFC 6052,
// RFC 6145) and 6to4 (RFC 3056).
const EMBEDDING: Readonly<Record<string, number>> = { rfc6052: 6, rfc6145: 6, '6to4': 1 }

/** A host without an allowed address. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/** The kind of an IP address. With an embedded IPv4 address it is private, or forbidden if that address is. */
export function addressKind(text: string): AddressKind {
  // The library reads the outdated form of an embedded address (RFC 4291, 2.5.5.1) as the current one.
  if (/^::\d+\./.test(text)) return 'forbidden'
  const address = ipaddr.process(text)
  const range = address.range()
  if (address instanceof ipaddr.IPv4) return rangeKind(address)
  const first = EMBEDDING[range]
  if (first !== undefined) return isReachable(address.parts.slice(first, first + 2)) ? 'private' : 'forbidden'
  return range === 'unicast' && !address.match(GLOBAL_IPV6) ? 'forbidden' : rangeKind(address)
}

function rangeKind(address: ipaddr.IPv4 | ipaddr.IPv6): AddressKind {
  return METADATA.has(address.toString()) ? 'forbidden' : (KINDS[address.range()] ?? 'forbidden')
}

/** Whether an IPv4 address, given as two 16-bit groups, is public or private. */
function isReachable(groups: readonly number[]): boolean {
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff])
  return ['public', 'private'].includes(rangeKind(new ipaddr.IPv4(bytes)))
}

/** Whether a connection by `https:` or `http:` may be made to an address. */
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

/** A lookup for sockets that returns only allowed addresses. */
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
 * Checks a host that is an IP address, since no lookup sees it.
 * @throws {AddressRefused} if it is not allowed.
 */
export function checkLiteralAddress({ hostname, protocol }: URL, reach: Reach): void {
  const address = hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(address) !== 0 && !isWithinReach(address, protocol, reach)) throw refusal(address)
}

function refusal(host: string): AddressRefused {
  return new AddressRefused(`No address of ${host} may be connected to`)
}
