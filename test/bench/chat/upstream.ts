/** A provider that answers at once, as a separate process: the baseline without a gateway. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { chunksOf, completion, sse } from '../../support/chat/upstream.ts'
import { listen } from '../../support/ports.ts'

const WORDS = Array.from({ length: 20 }, (_, index) => ` word${index}`)
const WHOLE = Buffer.from(JSON.stringify(completion({ role: 'assistant', content: WORDS.join('') })))
const EVENTS = Buffer.from(sse(chunksOf(WORDS)))

const server = createServer((request, response) => void answer(request, response))

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const isStream = /"stream":\s*true/.test(await text(request))
  const type = isStream ? 'text/event-stream' : 'application/json'
  const length = isStream ? {} : { 'content-length': WHOLE.length }
  response.writeHead(200, { 'content-type': type, ...length }).end(isStream ? EVENTS : WHOLE)
}
const { port } = await listen(server)
process.stdout.write(`${port}\n`)
