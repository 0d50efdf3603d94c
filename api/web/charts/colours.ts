/** Which colour an app has. The style sheet has seven, told apart in pairs with red-green blindness too. */

const COLOURS = 7

/**
 * The colour of each app, by which its band is found. An app keeps its own colour, over lists, windows and snapshots,
 * unless one before it in the same chart has that colour: then it gets the next that is free.
 * @param apps at most seven ids, first ranks first.
 */
export function coloursOf(apps: readonly bigint[]): string[] {
  const taken = new Set<number>()
  return apps.map((id) => {
    let colour = Number(id % BigInt(COLOURS))
    while (taken.has(colour) && taken.size < COLOURS) colour = (colour + 1) % COLOURS
    taken.add(colour)
    return String(colour)
  })
}
