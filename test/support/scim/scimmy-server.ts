/**
 * A SCIM server made of published packages (scimmy and its routers), as a process of its own: the packages keep
 * their state in globals. EXPRESS says which Express the routers stand on: 4, for which they were written, or 5,
 * where they lose startIndex and count and always answer with the first page. TOKEN is what it wants to see.
 */
import { randomUUID } from 'node:crypto'
import { registerHooks } from 'node:module'
import type { Express } from 'express'

const { EXPRESS, TOKEN } = process.env
const framework = EXPRESS === '4' ? 'express4' : 'express'

registerHooks({
  resolve: (specifier, context, next) =>
    next(
      specifier === 'express' && context.parentURL?.includes('/scimmy-routers/') ? framework : specifier,
      context,
    ),
})

const { default: SCIMMYRouters, SCIMMY } = await import('scimmy-routers')
const { default: express }: { default: () => Express } = await import(framework)

type Instance = Parameters<Parameters<typeof groupsOf.ingress>[0]>[1]
type Group = Pick<Instance, 'id' | 'displayName' | 'members'> & { readonly externalId?: string }

const groupsOf = SCIMMY.Resources.declare(SCIMMY.Resources.Group)
const groups = new Map<string, Group>()
/** The name of groups that can be read by their id, and that no list has: no longer shared. */
const HIDDEN = 'Hidden'

groupsOf
  .ingress((resource, instance) => {
    const { displayName, members, externalId } = instance
    const group = {
      id: resource.id ?? randomUUID(),
      displayName,
      members: members ?? [],
      ...(externalId && { externalId }),
    }
    groups.set(group.id, group)
    return group
  })
  .egress((resource) => {
    if (resource.id === undefined)
      return [...groups.values()].filter(({ displayName }) => displayName !== HIDDEN)
    const group = groups.get(resource.id)
    if (group === undefined) throw new SCIMMY.Types.Error(404, '', `Resource ${resource.id} not found`)
    return group
  })
  .degress((resource) => void groups.delete(resource.id ?? ''))

const app = express()
app.use(
  '/scim/v2',
  new SCIMMYRouters({
    type: 'bearer',
    handler: (request: { header: (name: string) => string | undefined }) => {
      if (request.header('Authorization') !== `Bearer ${TOKEN}`) throw new Error('Authorization not present!')
      return 'administrator'
    },
  }),
)
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') process.stdout.write(`http://127.0.0.1:${address?.port}/scim/v2\n`)
})
