/** Checks of the configuration that the pipeline and the API share: settings, folders and hosts. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { once } from 'node:events'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { z } from 'zod'

/** The result of a check, a sentence per finding. */
export const configCheckSchema = z.strictObject({
  /** A program does not start with a fault. */
  faults: z.array(z.string()),
  /** A program starts and works without the thing named. */
  warnings: z.array(z.string()),
})
export type ConfigCheck = z.infer<typeof configCheckSchema>

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The faults of the settings, a sentence per setting, which begins with its name.
 * An empty variable counts as not set.
 */
export function settingFaults(
  settings: Readonly<Record<string, z.ZodType>>,
  environment: Environment,
): ReadonlyMap<string, string> {
  const faults = Object.entries(settings).flatMap(([name, schema]): [string, string][] => {
    const parsed = schema.safeParse(environment[name] || undefined)
    return parsed.success
      ? []
      : [[name, `${name}: ${parsed.error.issues.map(({ message }) => message).join(', ')}`]]
  })
  return new Map(faults)
}

/** The environment without these variables, so that the remaining settings can be checked. */
export function withoutSettings(environment: Environment, names: Iterable<string>): Environment {
  const left = new Set(names)
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !left.has(name)))
}

/** What a program does with the files of a folder. */
type Use = 'read' | 'write'

const RIGHTS: Readonly<Record<Use, number>> = {
  read: constants.R_OK,
  write: constants.R_OK | constants.W_OK,
}

/**
 * Why DATA_DIR or its contents cannot be used so, a sentence per reason.
 * @param inside files and folders in it; any may be missing.
 */
export function dataFolderFaults(dataDir: string, inside: readonly string[], use: Use = 'write'): string[] {
  return missingRights(dataDir, inside, use).map(
    (reason) => `DATA_DIR "${dataDir}" cannot be used: ${reason}`,
  )
}

/** The same of any folder, without its name before each reason. */
export function missingRights(folder: string, inside: readonly string[], use: Use = 'write'): string[] {
  const paths = inside.map((name) => join(folder, name)).filter((path) => existsSync(path))
  const reasons = [
    reasonAgainst(() => accessFolder(nearestExisting(folder), use)),
    ...paths.map((path) => reasonAgainst(() => access(path, use))),
  ]
  return reasons.filter((reason) => reason !== undefined)
}

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path))
}

function access(path: string, use: Use): void {
  if (statSync(path).isDirectory()) accessFolder(path, use)
  else accessSync(path, RIGHTS[use])
}

function accessFolder(path: string, use: Use): void {
  if (!statSync(path).isDirectory()) throw new Error(`${path} is not a folder`)
  accessSync(path, RIGHTS[use] | constants.X_OK)
}

function reasonAgainst(work: () => void): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Time limit for a connection. */
const CONNECT_MS = 2000
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }

/** Warning if nothing accepts a connection at the address of a setting. Nothing is sent. */
export async function hostWarnings(name: string, address: string): Promise<string[]> {
  const { hostname, port, protocol } = new URL(address)
  // URLs put an IPv6 address in brackets; sockets do not accept them.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const target = { host, port: Number(port) || (DEFAULT_PORTS[protocol] ?? 443) }
  const socket = connect(target)
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) })
    return []
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    const reason = code === 'ABORT_ERR' ? `no answer within ${CONNECT_MS / 1000} seconds` : code
    return [`${name}: nothing answers at ${hostname}, port ${target.port}: ${reason}`]
  } finally {
    socket.destroy()
  }
}
