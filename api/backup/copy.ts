/** Copies files: hard links are kept as such, and each file is synced to disk. */
import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { copyFile, link, mkdir, open, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf } from '../process/system-errors.ts'

/** Size and checksum of a file. */
export async function sha256Of(path: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path)) {
    const part: unknown = chunk
    if (!Buffer.isBuffer(part)) continue
    hash.update(part)
    bytes += part.length
  }
  return { bytes, sha256: hash.digest('hex') }
}

/** The copies by identity of their source, since several snapshots share months. */
export type Copied = Map<string, string>

/**
 * Copies a file; another name of a copied file becomes a hard link to that copy.
 * @param isFixed whether the file never changes: then it is hard-linked if both are on one file system.
 */
export async function copyOne(
  source: string,
  target: string,
  { isFixed, copied }: { readonly isFixed: boolean; readonly copied: Copied },
): Promise<void> {
  const { dev, ino } = await stat(source, { bigint: true })
  const former = copied.get(`${dev} ${ino}`)
  await mkdir(dirname(target), { recursive: true })
  if (former !== undefined && (await tryToLink(former, target))) return
  if (!isFixed || !(await tryToLink(source, target))) {
    await copyFile(source, target, constants.COPYFILE_FICLONE)
    await syncToDisk(target)
  }
  copied.set(`${dev} ${ino}`, target)
}

/** False if a link is impossible: between file systems, without support, or beyond the limit of links. */
async function tryToLink(source: string, target: string): Promise<boolean> {
  try {
    await link(source, target)
    return true
  } catch (error) {
    if (['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP'].includes(codeOf(error) ?? '')) return false
    throw error
  }
}

/** Makes a file, or the names in a folder, survive a power cut. */
export async function syncToDisk(path: string): Promise<void> {
  await using handle = await open(path)
  await handle.sync()
}

/**
 * Copies the files below a folder, and resolves to their relative paths. Unfinished files (their names begin with a
 * dot) and files that are removed meanwhile are left out.
 */
export async function copyBelow(
  source: string,
  target: string,
  options: { readonly isFixed: boolean; readonly copied: Copied },
): Promise<string[]> {
  const names = (await unlessAbsent(readdir(source))) ?? []
  const paths: string[] = []
  for (const name of names.filter((each) => !each.startsWith('.')).toSorted()) {
    const [from, to] = [join(source, name), join(target, name)]
    const found = await unlessAbsent(stat(from))
    if (found?.isDirectory() === true) {
      paths.push(...(await copyBelow(from, to, options)).map((inner) => join(name, inner)))
    } else if (found !== undefined && (await unlessAbsent(copyOne(from, to, options).then(() => true)))) {
      paths.push(name)
    }
  }
  return paths
}

async function unlessAbsent<Result>(read: Promise<Result>): Promise<Result | undefined> {
  try {
    return await read
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}
