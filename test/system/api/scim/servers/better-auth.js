/**
 * A SCIM server of better-auth and its plugin over an in-memory database. SCIM_SERVER names the folder of the packages,
 * TOKEN is the expected token. Prints its address.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

const load = createRequire(join(process.env.SCIM_SERVER, 'index.js'))
const { betterAuth } = load('better-auth')
const { getMigrations } = load('better-auth/db/migration')
const { toNodeHandler } = load('better-auth/node')
const { scim } = load('@better-auth/scim')

const server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1')
await once(server, 'listening')
const baseURL = `http://127.0.0.1:${server.address().port}`
const credentials = [{ type: 'bearer', id: 'one', token: process.env.TOKEN }]
const auth = betterAuth({
  baseURL,
  secret: process.env.TOKEN,
  database: new DatabaseSync(':memory:'),
  telemetry: { enabled: false },
  logger: { disabled: true },
  plugins: [scim({ connections: [{ id: 'directory', credentials }] })],
})
const handle = toNodeHandler(auth)
await (await getMigrations(auth.options)).runMigrations()
process.stdout.write(`${baseURL}/api/auth/scim/v2\n`)
