/** The HTTP interface of a ClickHouse server that takes inserts, or behaves as a test scripts. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { freePort } from '../ports.ts'

const rowSchema = z.looseObject({ request_id: z.string() })
type Row = z.infer<typeof rowSchema>

/** A complete insert; `taken` if the server stored its rows. */
interface Insert {
  readonly query: string
  readonly body: string
  readonly rows: readonly Row[]
  taken: boolean
}

/** Handles an insert instead of storing it; undefined to store it after all. */
type Behaviour = (insert: Insert, response: ServerResponse) => boolean | void

/** Stores nothing and closes the connection. */
export const hangUp: Behaviour = (_insert, response) => {
  response.destroy()
  return true
}

/** Stores the rows and closes the connection without an answer. */
export const loseAnswer: Behaviour = (insert, response) => {
  insert.taken = true
  response.destroy()
  return true
}

/** Answers like a proxy without its server. */
export const badGateway: Behaviour = (_insert, response) => {
  response.writeHead(502, { 'Content-Type': 'text/html' }).end('<h1>Bad gateway</h1>')
  return true
}

/** Rejects inserts that contain the row `id`, with a server's message. */
export function refuse(id: string, words: string): Behaviour {
  return ({ rows }, response) => {
    if (!rows.some((row) => row.request_id === id)) return false
    response.writeHead(500).end(words)
    return true
  }
}

/** A server on a free port that does not listen yet. */
export async function scriptClickHouse() {
  const port = await freePort()
  const inserts: Insert[] = []
  const script: { behaviour: Behaviour | undefined } = { behaviour: undefined }
  const server = createServer((request, response) => {
    // A killed process leaves half a request.
    void answer(request, response).catch(() => response.destroy())
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const query = new URL(request.url ?? '', 'http://host').searchParams.get('query') ?? ''
    const lines = body.split('\n').filter((line) => line !== '')
    const rows = lines.map((line) => rowSchema.parse(JSON.parse(line)))
    const insert: Insert = { query, body, rows, taken: false }
    inserts.push(insert)
    if (script.behaviour?.(insert, response) === true) return
    insert.taken = true
    response.end()
  }

  return {
    address: {
      url: `http://127.0.0.1:${port}`,
      user: 'writer',
      password: 's3cret-of-the-test',
      database: 'default',
      table: 'usage',
      cluster: undefined,
    },
    inserts,
    script,
    /** Ids of the stored rows, in order of arrival. */
    ids: () => inserts.flatMap(({ rows, taken }) => (taken ? rows.map((row) => row.request_id) : [])),
    async listen() {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    async close() {
      if (!server.listening) return
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
