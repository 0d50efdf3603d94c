/** The seed of an environment variable, or a new one; prints it, so that a failed run can be repeated. */
export function seedFrom(variable: string): number {
  const seed = Number(process.env[variable] ?? Date.now() % 1_000_000)
  process.stderr.write(`${variable}=${seed} repeats this run\n`)
  return seed
}

/** Pseudo-random numbers from 0 to 1 that depend on the seed only (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
