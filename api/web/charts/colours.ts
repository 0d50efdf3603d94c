/** The ink of a chart band: a colour per app, and stripes if a chart has the colour twice. */

/** Colours of the style sheet. A prime number, so that ids in even steps get different ones too. */
const COLOURS = 13n

export interface Ink {
  /** The name of the colour in the style sheet. */
  readonly colour: string
  /** How many earlier bands have the colour; 0 is plain. */
  readonly mark: number
}

/** All other usage together. */
export const OTHERS: Ink = { colour: 'others', mark: 0 }

/** The apps of a chart with their inks. The colour depends only on the id, so it is the same in every chart. */
export function inked<App extends { readonly id: bigint }>(apps: readonly App[]): readonly (App & Ink)[] {
  const had = new Map<string, number>()
  return apps.map((app) => {
    const colour = String(app.id % COLOURS)
    const mark = had.get(colour) ?? 0
    had.set(colour, mark + 1)
    return { ...app, colour, mark }
  })
}
