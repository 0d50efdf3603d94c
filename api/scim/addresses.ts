/** Which addresses a sync may connect to: checked at each connection, as just resolved, so DNS rebinding is useless. */
import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import type { Agent } from 'undici'
import type { Connection } from './connections.ts'
import { SyncFailure } from './failures.ts'

const CONNECT_MS = 10_000

/** What the operator allowed beyond the public internet. `allow_private` includes this machine. */
type Reach = Pick<Connection, 'allow_loopback' | 'allow_private'>

const LOOPBACK = blockList('127.0.0.0/8 ::1/128')
const PRIVATE = blockList('10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7')
// Clouds hand out credentials on link-local addresses, and AWS, Google and Alibaba on three private ones. The rest is
// multicast, documentation, translation or reserved (IANA's registries of special-purpose addresses).
const FORBIDDEN = blockList(
  '0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 ' +
    '192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 100.100.100.200/32 ' +
    'fd00:ec2::254/128 fd20:ce::254/128 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20',
)
/** The assigned public internet (RFC 4291, 2.4). */
const PUBLIC = blockList('0.0.0.0/0 2000::/3')

function blockList(subnets: string): BlockList {
  const list = new BlockList()
  for (const subnet of subnets.split(' ')) {
    const [address = '', bits] = subnet.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/** Whether a connection by `https:` or `http:` may be made to an address; by `http:` only to this machine. */
export function isWithinReach(address: string, protocol: string, reach: Reach): boolean {
  // BlockList applies the rules of IPv4 to the IPv6 form of IPv4 addresses (RFC 4291, 2.5.5.2).
  const isIn = (list: BlockList) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  if (isIn(LOOPBACK)) return reach.allow_loopback + reach.allow_private > 0
  if (protocol !== 'https:' || isIn(FORBIDDEN)) return false
  return isIn(PRIVATE) ? reach.allow_private > 0 : isIn(PUBLIC)
}

/** An agent that connects to allowed addresses only, or fails for a SyncFailure; its 7 MB are loaded on first use. */
export async function guardedAgent(reach: Reach, resolve: LookupFunction = lookup): Promise<Agent> {
  const { Agent, buildConnector } = await import('undici')
  return new Agent({
    connect(options, callback) {
      const { hostname, protocol } = options
      // A host that is an address is resolved to itself.
      resolve(hostname.replace(/^\[(.*)\]$/, '$1'), { all: true }, (error, found) => {
        if (error !== null) return callback(error, null)
        const all = Array.isArray(found) ? found : []
        const allowed = all.filter(({ address }) => isWithinReach(address, protocol, reach))
        const [first] = allowed
        const refusal = new SyncFailure('address_refused', `No address of ${hostname} may be connected to`)
        if (first === undefined) return callback(refusal, null)
        // Node asks for one address if it is told not to choose between families.
        const onlyAllowed: LookupFunction = (_hostname, wanted, done) =>
          wanted.all === true ? done(null, allowed) : done(null, first.address, first.family)
        buildConnector({ lookup: onlyAllowed, timeout: CONNECT_MS })(options, callback)
      })
    },
  })
}
