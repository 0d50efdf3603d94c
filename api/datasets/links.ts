/** The header `Link` (RFC 8288, CONTRACT 4.6). */

/** The header's value for targets by their relation. */
export function linkField(targets: Readonly<Record<string, string>>): string {
  const links = Object.entries(targets).map(([relation, target]) => `<${target}>; rel="${relation}"`)
  return links.join(', ')
}

/** Parameters of a page of a list. */
type PageParameters = {
  readonly limit?: number
  readonly offset?: number
  readonly [name: string]: string | number | undefined
}

/**
 * The targets of the pages around one, by their relation: none is empty.
 * @param starts number of offsets at which a page may begin.
 */
export function pagesAround(
  path: string,
  parameters: PageParameters,
  starts: number,
): Record<string, string> {
  const { limit = 0, offset = 0 } = parameters
  if (starts === 0) return {}
  // The last page that `next` reaches, or before this one if this one is beyond the end.
  const last = Math.max(0, offset + limit * Math.floor((starts - 1 - offset) / limit))
  // Shorter at the beginning of the list, so that no row comes twice.
  const before = { limit: Math.min(limit, offset), offset: Math.max(0, offset - limit) }
  const pages: Readonly<Record<string, object>> = {
    ...(offset > 0 && { prev: last < offset ? { offset: last } : before }),
    ...(last > offset && { next: { offset: offset + limit } }),
    // A list of one page ends with it.
    ...(offset + last > 0 && { last: { offset: last } }),
  }
  const addresses = Object.entries(pages).map(([relation, page]) => {
    const named = Object.entries({ ...parameters, ...page }).map(([name, value]) => [name, String(value)])
    return [relation, `${path}?${new URLSearchParams(named).toString().replaceAll('%2C', ',')}`] as const
  })
  return Object.fromEntries(addresses)
}
