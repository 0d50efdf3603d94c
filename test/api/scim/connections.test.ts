/** CONTRACT 5: how a sync reaches its directory: addresses, TLS, tokens, and the sentence for each fault. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { getDefaultAutoSelectFamily, setDefaultAutoSelectFamily, type LookupFunction } from 'node:net'
import { text } from 'node:stream/consumers'
import { fetch } from 'undici'
import { describe, expect, it, onTestFinished } from 'vitest'
import { guardedAgent, isWithinReach } from '../../../api/scim/addresses.ts'
import { FAILURES, type Failure } from '../../../api/scim/failures.ts'
import { makeFolder } from '../../support/folders.ts'
import { listen } from '../../support/ports.ts'
import {
  DIRECTORY_TOKEN,
  groupsNamed,
  manyGroups,
  startDirectory,
  usualReply,
} from '../../support/scim/faulty-directory.ts'
import { startSyncApi, useAccounts } from '../../support/scim/sync.ts'

const connect = useAccounts()

const NOTHING = { allow_loopback: 0, allow_private: 0 }
const PRIVATE = { allow_loopback: 0, allow_private: 1 }
const LOOPBACK = { allow_loopback: 1, allow_private: 0 }

describe('an address', () => {
  it.each([
    [true, true, '8.8.8.8 172.32.0.1 2606:4700::1111 ::ffff:8.8.8.8 2400:cb00::1'],
    [false, true, '10.1.2.3 172.31.255.255 192.168.0.1 100.64.0.1 fd12::1 ::ffff:192.168.0.1'],
    [false, true, '127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1'],
    [false, false, '169.254.169.254 ::ffff:a9fe:a9fe fd00:ec2::254 fd20:ce::254 100.100.100.200'],
    [false, false, '0.0.0.0 :: ::127.0.0.1 fe80::1 224.0.0.1 255.255.255.255 198.51.100.1'],
    [false, false, '64:ff9b::a9fe:a9fe 64:ff9b::7f00:1 2002:7f00:1:: 2001::1 2001:db8::1'],
    [false, false, '3fff::1 5f00::1 100::1 4000::1 192.88.99.1 ::ffff:0:127.0.0.1'],
  ])('is within reach by default: %s, if private ones are: %s; %s', (byDefault, withPrivate, addresses) => {
    for (const address of addresses.split(' ')) {
      expect([address, isWithinReach(address, 'https:', NOTHING)]).toEqual([address, byDefault])
      expect([address, isWithinReach(address, 'https:', PRIVATE)]).toEqual([address, withPrivate])
    }
  })

  it('is reached by http on this machine alone', () => {
    const reached = (reach: typeof NOTHING) =>
      ['8.8.8.8', '10.0.0.1', '127.0.0.1', '169.254.169.254'].filter((address) =>
        isWithinReach(address, 'http:', reach),
      )
    const here = ['127.0.0.1']
    expect([NOTHING, PRIVATE, LOOPBACK].map(reached)).toEqual([[], here, here])
  })

  it.each([
    ['chooses between families', true],
    ['takes the first address', false],
  ])('is checked at each connection, so that DNS rebinding is useless; Node %s', async (_case, chooses) => {
    const usual = getDefaultAutoSelectFamily()
    onTestFinished(() => setDefaultAutoSelectFamily(usual))
    setDefaultAutoSelectFamily(chooses)
    await using directory = await startDirectory([])
    const resolve: LookupFunction = (_name, _options, done) =>
      done(null, [{ address: '127.0.0.1', family: 4 }])
    const request = async (reach: typeof NOTHING) => {
      const dispatcher = await guardedAgent(reach, resolve)
      const { status } = await fetch(`http://a.example:${directory.port}/`, { dispatcher })
      await dispatcher.destroy()
      return status
    }
    expect(await request(LOOPBACK)).toBe(401)
    const cause = expect.objectContaining({ detail: 'No address of a.example may be connected to' })
    await expect(request(NOTHING)).rejects.toMatchObject({ cause })
    expect(directory.asked).toHaveLength(1)
  })
})

describe('a directory that cannot be reached fails with its own sentence', () => {
  it.each<[string, (url: string) => string, Failure]>([
    ['does not resolve', () => 'https://directory.invalid/v2', 'directory_unknown_host'],
    ['refuses the connection', () => 'http://127.0.0.1:2/v2', 'directory_connection_refused'],
    ['speaks no TLS', (url) => url.replace('http:', 'https:'), 'directory_tls'],
    ['may not be connected to', () => 'https://10.0.0.1/v2', 'address_refused'],
  ])('if it %s', async (_name, urlOf, failure) => {
    await using directory = await startDirectory([])
    const acme = await connect(urlOf(directory.url))
    expect((await acme.sync()).error_message).toBe(FAILURES[failure])
  })
})

/** A token endpoint (RFC 6749, 4.4), and the directory that takes its tokens `lifetime` times. */
async function startOAuth({ accepts = 'header', lifetime = 1000 } = {}) {
  const requests: { authorization: string | undefined; url: string; form: URLSearchParams }[] = []
  const uses = new Map<string, number>()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { authorization } = request.headers
    requests.push({ authorization, url: request.url ?? '', form: new URLSearchParams(await text(request)) })
    if (accepts === 'people') return response.end('<html></html>')
    if (accepts === 'none') return response.destroy()
    const isAccepted = (accepts === 'header') === (authorization !== undefined) && accepts !== 'nothing'
    const access_token = `issued-token-${requests.length}`
    uses.set(access_token, 0)
    response.writeHead(isAccepted ? 200 : 401)
    return response.end(JSON.stringify(isAccepted ? { access_token } : { error: 'invalid_client' }))
  }
  const endpoint = await listen(createServer((request, response) => void answer(request, response)))
  const directory = await startDirectory(manyGroups(250), {
    quirk: (asked) => {
      const token = asked.authorization?.replace('Bearer ', '') ?? ''
      const used = uses.get(token) ?? lifetime
      if (used >= lifetime) return { status: 401, body: {} }
      uses.set(token, used + 1)
      return usualReply(directory.groups, { ...asked, authorization: `Bearer ${DIRECTORY_TOKEN}` })
    },
  })
  return {
    requests,
    url: directory.url,
    oauth: {
      token_url: `http://127.0.0.1:${endpoint.port}/token?p=B2C_1&scope=api%3A%2F%2Fa+b?c`,
      client_id: 'a client:1',
    },
    async [Symbol.asyncDispose]() {
      await endpoint.close()
      await directory.close()
    },
  }
}

describe('a token from a token address', () => {
  const SECRET = 'client-secret-7f3a'

  async function sync({ url, oauth }: Awaited<ReturnType<typeof startOAuth>>) {
    await using service = await startSyncApi({ DATA_DIR: makeFolder() }, { token: SECRET })
    const acme = await service.connect(url, oauth)
    const job = await acme.sync()
    const stored = JSON.stringify(await service.store.query('SELECT * FROM scim_connections'))
    return { job, written: service.lines.join('') + stored }
  }

  it('is requested for a sync with the credentials of the client, and neither stored nor logged', async () => {
    await using provider = await startOAuth()
    const { job, written } = await sync(provider)
    expect(job).toMatchObject({ status: 'succeeded', synced_groups: 250 })
    expect(provider.requests).toHaveLength(1)
    const [{ authorization = '', url, form } = { url: '', form: new URLSearchParams() }] = provider.requests
    const credentials = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString()
    expect(credentials).toBe(`a%20client%3A1:${SECRET}`)
    // Entra ID, Okta, Oracle and WSO2 read the scope in the body alone, Azure AD B2C its policy in the address alone.
    expect([url, Object.fromEntries(form)]).toEqual([
      '/token?p=B2C_1',
      { grant_type: 'client_credentials', scope: 'api://a b?c' },
    ])
    expect(written).not.toMatch(/issued-token|client-secret/)
  })

  it.each<[string, Parameters<typeof startOAuth>[0], Failure | null, number]>([
    ['is requested again if it expires during the sync', { lifetime: 3 }, null, 2],
    ['fails the sync if the directory refuses a new one too', { lifetime: 0 }, 'directory_unauthorized', 3],
    ['is requested with the credentials in the body if the header is refused', { accepts: 'body' }, null, 2],
    ['fails the sync with its own sentence if none is issued', { accepts: 'nothing' }, 'token_refused', 2],
    ['fails it so if a page for people is in its place', { accepts: 'people' }, 'token_refused', 1],
    ['fails it so if its address hangs up', { accepts: 'none' }, 'token_refused', 4],
  ])('%s', async (_name, options, failure, requests) => {
    await using provider = await startOAuth(options)
    expect((await sync(provider)).job.error_message).toBe(failure && FAILURES[failure])
    expect(provider.requests).toHaveLength(requests)
    const inBody = provider.requests.at(-1)?.form.get('client_secret') ?? null
    expect(inBody).toBe(['body', 'nothing'].includes(options?.accepts ?? '') ? SECRET : null)
  })
})

it.each([
  ['not one word', 'DIRECTORY_TOKEN'],
  ['missing', 'ANOTHER_VARIABLE'],
])('a token that is %s is not sent, and not repeated', async (_name, token_source) => {
  await using directory = await startDirectory(groupsNamed('1'))
  await using service = await startSyncApi({ DATA_DIR: makeFolder() }, { token: 'two words-7f3a' })
  const acme = await service.connect(directory.url, { token_source })
  expect((await acme.sync()).error_message).toBe(FAILURES.token_unavailable)
  expect(directory.asked).toEqual([])
  expect(service.lines.join('')).not.toContain('words-7f3a')
})
