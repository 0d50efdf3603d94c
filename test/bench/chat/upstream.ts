/** A provider that answers at once, as a separate process: the baseline without a gateway. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { chunksOf, completion, sse } from '../../support/chat/upstream.ts'

const WORDS = Array.from({ length: 20 }, (_, index) => ` word${index}`)
const WHOLE = Buffer.from(JSON.stringify(completion(WORDS.join(''))))
const EVENTS = Buffer.from(sse(chunksOf(WORDS)))

const server = createServer((request, response) => void answer(request, response))

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request)
  if (/"stream":\s*true/.test(body)) {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(EVENTS)
  } else {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': WHOLE.length }).end(WHOLE)
  }
}
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') process.stdout.write(`${address.port}\n`)
})
