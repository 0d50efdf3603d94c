/** CONTRACT 5: how a sync reaches its directory: addresses, TLS, tokens, and the sentence for each fault. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { guardedLookup, isWithinReach } from '../../../api/scim/addresses.ts'
import { FAILURES, type Failure } from '../../../api/scim/failures.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { useAccounts } from '../../support/scim/directory-case.ts'
import { groupsNamed, manyGroups, startDirectory, usualReply } from '../../support/scim/faulty-directory.ts'
import { DIRECTORY_TOKEN } from '../../support/scim/faulty-directory.ts'
import { startSyncApi } from '../../support/scim/sync.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())
const { connect } = useAccounts()

const NOTHING = { allow_loopback: 0, allow_private: 0 }
const PRIVATE = { allow_loopback: 0, allow_private: 1 }
const LOOPBACK = { allow_loopback: 1, allow_private: 0 }

describe('an address', () => {
  it.each([
    [
      ['8.8.8.8', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8', '2400:cb00::1'],
      [true, true],
    ],
    [
      ['10.1.2.3', '172.31.255.255', '192.168.0.1', '100.64.0.1', 'fd12::1', '::ffff:192.168.0.1'],
      [false, true],
    ],
    [
      ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1'],
      [false, true],
    ],
    [
      ['169.254.169.254', '::ffff:a9fe:a9fe', 'fd00:ec2::254', 'fd20:ce::254', '100.100.100.200'],
      [false, false],
    ],
    [
      ['0.0.0.0', '::', '::127.0.0.1', 'fe80::1', '224.0.0.1', '255.255.255.255', '198.51.100.1'],
      [false, false],
    ],
    [
      ['64:ff9b::a9fe:a9fe', '64:ff9b::7f00:1', '2002:7f00:1::', '2001::1', '2001:db8::1'],
      [false, false],
    ],
    [
      ['3fff::1', '5f00::1', '100::1', '4000::1', '192.88.99.1', '::ffff:0:127.0.0.1'],
      [false, false],
    ],
  ])('is within reach by the rule: %j', (addresses, [byDefault, withPrivate]) => {
    for (const address of addresses) {
      expect([address, isWithinReach(address, 'https:', NOTHING)]).toEqual([address, byDefault])
      expect([address, isWithinReach(address, 'https:', PRIVATE)]).toEqual([address, withPrivate])
    }
  })

  it('is reached by http on this machine alone', () => {
    const reached = (reach: typeof NOTHING) =>
      ['8.8.8.8', '10.0.0.1', '127.0.0.1', '169.254.169.254'].filter((address) =>
        isWithinReach(address, 'http:', reach),
      )
    expect([reached(NOTHING), reached(PRIVATE), reached(LOOPBACK)]).toEqual([
      [],
      ['127.0.0.1'],
      ['127.0.0.1'],
    ])
  })

  it('is checked at each connection, so that DNS rebinding is useless', async () => {
    const found = [{ address: '10.0.0.1', family: 4 }]
    const lookup = guardedLookup('https:', NOTHING, (_name, _options, callback) => callback(null, found))
    const error = await new Promise((resolve) => lookup('a.example', {}, resolve))
    expect(String(error)).toContain('No address of a.example may be connected to')
  })
})

describe('a directory that cannot be reached', () => {
  it.each<[string, string, Failure]>([
    ['does not resolve', 'https://directory.invalid/v2', 'directory_unknown_host'],
    ['refuses the connection', 'http://127.0.0.1:2/v2', 'directory_connection_refused'],
  ])('fails with its own sentence if it %s', async (_name, url, failure) => {
    const acme = await connect(url)
    expect((await acme.sync()).error_message).toBe(FAILURES[failure])
  })

  it('fails with its own sentence if it speaks no TLS', async () => {
    await using directory = await startDirectory([])
    const acme = await connect(directory.url.replace('http:', 'https:'))
    expect((await acme.sync()).error_message).toBe(FAILURES.directory_tls)
  })
})

/** A token endpoint (RFC 6749, 4.4), and the directory that takes its tokens. */
async function startOAuth({ accepts = 'header', lifetime = 1000 } = {}) {
  const requests: { authorization: string | undefined; form: URLSearchParams }[] = []
  const uses = new Map<string, number>()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { authorization } = request.headers
    requests.push({ authorization, form: new URLSearchParams(await text(request)) })
    const isAccepted = (accepts === 'header') === (authorization !== undefined) && accepts !== 'nothing'
    response.writeHead(isAccepted ? 200 : 401)
    const token = `issued-token-${requests.length}`
    uses.set(token, 0)
    response.end(JSON.stringify(isAccepted ? { access_token: token } : { error: 'invalid_client' }))
  }
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const directory = await startDirectory(manyGroups(250), {
    quirk: (asked) => {
      const token = asked.authorization?.replace('Bearer ', '') ?? ''
      const used = uses.get(token)
      if (used === undefined || used >= lifetime) return { status: 401, body: {} }
      uses.set(token, used + 1)
      return usualReply(directory.groups, { ...asked, authorization: `Bearer ${DIRECTORY_TOKEN}` })
    },
  })
  const port = typeof address === 'object' ? address?.port : 0
  return {
    requests,
    url: directory.url,
    oauth: { token_url: `http://127.0.0.1:${port}/token`, client_id: 'a client:1' },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await directory[Symbol.asyncDispose]()
    },
  }
}

describe('a token from a token address', () => {
  const SECRET = 'client-secret-7f3a'

  async function sync({ url, oauth }: Awaited<ReturnType<typeof startOAuth>>) {
    await using service = await startSyncApi({ DATA_DIR: folders.make() }, { token: SECRET })
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
    const [{ authorization = '', form } = { form: new URLSearchParams() }] = provider.requests
    const credentials = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString()
    expect(credentials).toBe(`a%20client%3A1:${SECRET}`)
    expect(form.get('grant_type')).toBe('client_credentials')
    expect(written).not.toMatch(/issued-token|client-secret/)
  })

  it('is requested again if it expires during the sync', async () => {
    await using provider = await startOAuth({ lifetime: 2 })
    expect((await sync(provider)).job).toMatchObject({ status: 'succeeded', synced_groups: 250 })
    expect(provider.requests).toHaveLength(2)
  })

  it('fails the sync if the directory refuses a new one too', async () => {
    await using provider = await startOAuth({ lifetime: 0 })
    expect((await sync(provider)).job.error_message).toBe(FAILURES.directory_unauthorized)
  })

  it('is requested with the credentials in the body if the header is refused', async () => {
    await using provider = await startOAuth({ accepts: 'body' })
    expect((await sync(provider)).job.status).toBe('succeeded')
    expect(provider.requests.at(-1)?.form.get('client_secret')).toBe(SECRET)
  })

  it('fails the sync with its own sentence if none is issued', async () => {
    await using provider = await startOAuth({ accepts: 'nothing' })
    expect((await sync(provider)).job.error_message).toBe(FAILURES.token_refused)
  })
})

it.each([
  ['not one word', 'DIRECTORY_TOKEN'],
  ['missing', 'ANOTHER_VARIABLE'],
])('a token that is %s is not sent, and not repeated', async (_name, token_source) => {
  await using directory = await startDirectory(groupsNamed('1'))
  await using service = await startSyncApi({ DATA_DIR: folders.make() }, { token: 'two words-7f3a' })
  const acme = await service.connect(directory.url, { token_source })
  expect((await acme.sync()).error_message).toBe(FAILURES.token_unavailable)
  expect(directory.asked).toEqual([])
  expect(service.lines.join('')).not.toContain('words-7f3a')
})
