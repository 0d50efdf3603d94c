/** The header `Link` (RFC 8288, CONTRACT 4.6). */

/** The header's value for targets by their relation. */
export function linkField(targets: Readonly<Record<string, string>>): string {
  const links = Object.entries(targets).map(([relation, target]) => `<${target}>; rel="${relation}"`)
  return links.join(', ')
}

/**
 * The targets of the pages around one, by their relation: none is empty.
 * @param parameters of the list, with its limit and offset if it has pages.
 * @param starts number of offsets at which a page may begin; 0 if it has no pages.
 */
export function pagesAround(
  path: string,
  parameters: Readonly<Record<string, string | number>>,
  starts: number,
): Record<string, string> {
  if (starts === 0) return {}
  const [limit, offset] = [Number(parameters['limit']), Number(parameters['offset'])]
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
