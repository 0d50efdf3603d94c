/** Addresses of PostgreSQL databases, `postgres://user:password@host:port/database`. */

const PROTOCOLS = ['postgres:', 'postgresql:']

/** The required form, for messages. */
export const DATABASE_URL_FORM = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'

/** Whether the text is a database address; the database may not exist. */
export function isDatabaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, pathname } = new URL(text)
  return PROTOCOLS.includes(protocol) && /^\/[^/%]+$/.test(pathname)
}

/** An address for messages, without user and password. */
export function describeDatabase(url: string): string {
  const { host, pathname, searchParams } = new URL(url)
  const server = searchParams.get('host') ?? host
  return `database "${pathname.slice(1)}" at ${server === '' ? 'localhost' : server}`
}
