/**
 * A SCIM server of scimmy and its routers over memory. SCIM_SERVER names the folder of the packages, TOKEN is the expected
 * token. Prints its address.
 */
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const { SCIM_SERVER, TOKEN } = process.env
const load = createRequire(join(SCIM_SERVER, 'index.js'))
const { default: SCIMMYRouters, SCIMMY } = load('scimmy-routers')
const express = load('express')

const groups = new Map()
/** Name of groups that are readable by id but not listed. */
const HIDDEN = 'Hidden'

SCIMMY.Resources.declare(SCIMMY.Resources.Group)
  .ingress((resource, { displayName, members = [], externalId }) => {
    const group = { id: resource.id ?? randomUUID(), displayName, members, ...(externalId && { externalId }) }
    groups.set(group.id, group)
    return group
  })
  .egress(({ id }) => {
    if (id === undefined) return [...groups.values()].filter(({ displayName }) => displayName !== HIDDEN)
    const group = groups.get(id)
    if (group === undefined) throw new SCIMMY.Types.Error(404, '', `Resource ${id} not found`)
    return group
  })
  .degress(({ id }) => void groups.delete(id))

const app = express()
app.use(
  '/scim/v2',
  new SCIMMYRouters({
    type: 'bearer',
    handler: (request) => {
      if (request.header('Authorization') !== `Bearer ${TOKEN}`) throw new Error('Authorization not present!')
      return 'administrator'
    },
  }),
)
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}/scim/v2\n`)
})
