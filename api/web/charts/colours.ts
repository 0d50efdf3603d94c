/** Which colour an app has. The style sheet has seven, told apart in pairs with red-green blindness too. */
import { z } from 'zod'
import type { ReadableSnapshot } from '../../datasets/snapshots/open-snapshot.ts'

const COLOURS = 7

/**
 * The colours of the apps of a chart, by which their bands are found.
 * @param apps at most seven ids, first ranks first.
 */
export type Colours = (apps: readonly bigint[]) => string[]

const LEADERS = `
  SELECT app_id FROM rankings
  WHERE window_days = 30 AND sort = 'popular' AND category IS NULL AND subcategory IS NULL AND rank <= ${COLOURS}
  ORDER BY rank`

const leaderRows = z.array(z.object({ app_id: z.bigint() }))

/** Reads which apps have a colour of their own in a snapshot: its first seven by tokens. */
export async function readColours(snapshot: ReadableSnapshot): Promise<Colours> {
  return coloursWith(leaderRows.parse(await snapshot.query(LEADERS, {})).map(({ app_id }) => app_id))
}

/**
 * Colours that stay with an app, whatever list it is in: always for the `leaders`, for others where no app of the chart
 * has theirs already. Such an app gets the next that is free.
 */
export function coloursWith(leaders: readonly bigint[]): Colours {
  const fixed = addColours(new Map(), leaders)
  return (apps) => {
    const led = new Map([...fixed].filter(([id]) => apps.includes(id)))
    const colours = addColours(led, apps)
    return apps.map((id) => String(colours.get(id) ?? 0))
  }
}

/** Gives each app without a colour its own, or the next that no other has. */
function addColours(given: ReadonlyMap<bigint, number>, apps: readonly bigint[]): Map<bigint, number> {
  const colours = new Map(given)
  const taken = new Set(given.values())
  for (const id of apps) {
    if (colours.has(id)) continue
    let colour = Number(id % BigInt(COLOURS))
    while (taken.has(colour) && taken.size < COLOURS) colour = (colour + 1) % COLOURS
    taken.add(colour)
    colours.set(id, colour)
  }
  return colours
}
