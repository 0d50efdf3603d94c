/** Baseline of Express: sends the bytes of a file with given headers, as a separate process. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import express from 'express'
import { z } from 'zod'
import { listen } from '../../support/ports.ts'

const taskSchema = z.object({
  path: z.string(),
  bodyFile: z.string(),
  headers: z.record(z.string(), z.string()),
})
const { path, bodyFile, headers } = taskSchema.parse(JSON.parse(process.argv[2] ?? ''))
const body = readFileSync(bodyFile)
const app = express()
// With an ETag among the headers, Express itself answers conditional requests with 304.
app.get(path, (_request, response) => void response.set(headers).send(body))
const { port } = await listen(createServer(app))
process.stdout.write(`${port}\n`)
