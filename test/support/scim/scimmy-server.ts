/**
 * A SCIM server of published packages (scimmy and its routers), as a separate process: the packages keep their state in
 * globals. EXPRESS selects Express 4, for which the routers were written, or 5, where they ignore startIndex and count and
 * always return the first page. TOKEN is the accepted token.
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
/** Name of groups that are readable by id but not listed. */
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
