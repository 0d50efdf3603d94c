/** What a band of a chart is drawn with: a colour that stays with its app, and stripes where a chart has the colour twice. */

/** Colours of the style sheet. A prime number: ids in even steps get different ones too. */
const COLOURS = 13n

export interface Ink {
  /** By which the style sheet finds the colour. */
  readonly colour: string
  /** How many bands before it have the colour; 0 is plain. */
  readonly mark: number
}

/** All other usage together. */
export const OTHERS: Ink = { colour: 'others', mark: 0 }

/** The apps of a chart with their inks. The colour follows from the id alone: it is the same in every chart. */
export function inked<App extends { readonly id: bigint }>(apps: readonly App[]): readonly (App & Ink)[] {
  const had = new Map<string, number>()
  return apps.map((app) => {
    const colour = String(app.id % COLOURS)
    const mark = had.get(colour) ?? 0
    had.set(colour, mark + 1)
    return { ...app, colour, mark }
  })
}
