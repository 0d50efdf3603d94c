/**
 * Which addresses a sync may connect to. The check stands at the moment of connecting, on the addresses that the
 * name resolved to just then, so a name that changes its meaning (DNS rebinding) gains nothing.
 */
import { lookup as systemLookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

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

// Of the special ranges that the library names, these have a use. In all others no directory is reached: link-local is
// where clouds hand out credentials, the rest is multicast, documentation, translation or reserved.
const KINDS: Readonly<Record<string, AddressKind>> = {
  unicast: 'public',
  private: 'private',
  carrierGradeNat: 'private',
  uniqueLocal: 'private',
  loopback: 'loopback',
}

// What is assigned to the public internet so far (RFC 4291, 2.4); the library counts all that has no name as unicast.
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')
// Where clouds (AWS, Google, Alibaba) hand out credentials, in ranges that are private otherwise.
const METADATA = new Set(['fd00:ec2::254', 'fd20:ce::254', '100.100.100.200'])

// The ranges of IPv6 with an IPv4 address inside, and the group of 16 bits at which that begins: translated addresses
// (RFC 6052, RFC 6145) and 6to4 (RFC 3056).
const EMBEDDING: Readonly<Record<string, number>> = { rfc6052: 6, rfc6145: 6, '6to4': 1 }

/** A host whose addresses are all out of reach. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/**
 * What kind of address an IP address is. One with an IPv4 address inside is private, unless that is an address which may
 * not be reached: then neither may this one.
 */
export function addressKind(text: string): AddressKind {
  // The library reads the outdated form of an embedded address (RFC 4291, 2.5.5.1) as the one in use.
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

/** Whether an IPv4 address, given as two groups of 16 bits, is public or private. */
function isReachable(groups: readonly number[]): boolean {
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff])
  return ['public', 'private'].includes(rangeKind(new ipaddr.IPv4(bytes)))
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
