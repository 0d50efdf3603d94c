/** A small disk, on machines that allow a test to mount one. */
import { spawnSync } from 'node:child_process'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Mounts a disk of `size` (48m, say) at `folder`; undefined, with a line on stderr, if that is not allowed. */
export function mountSmallDisk(folder: string, size: string) {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder]).status === 0
  if (!mounted) {
    process.stderr.write('No disk can be mounted here: the test of a full one is skipped\n')
    return undefined
  }
  const filler = join(folder, 'filler')
  return {
    /** Fills the disk up to this many free bytes. */
    fillUp(free = 0): void {
      const { bavail, bsize } = statfsSync(folder)
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - free), 1))
    },
    makeRoom: () => rmSync(filler),
    unmount: () => void spawnSync('umount', ['-l', folder]),
  }
}
