import type { Query } from './client.ts'
import { SyncFailure } from './failures.ts'
import type { Page } from './messages.ts'

/** The result of a walk over a list. */
export interface WalkEnd {
  /** The directory's last total, if any. */
  readonly total: number | undefined
  /** The pages with new groups, their rows, and the different groups among these. */
  readonly pages: number
  readonly rows: number
  readonly groups: number
  /** Rows without a usable group. */
  readonly unusable: number
  /** Whether two pages had different totals: groups changed meanwhile, and rows may have been skipped. */
  readonly unsteady: boolean
  /** Whether the directory marked the last page: a cursor walk that ended. */
  readonly endStated: boolean
  /**
   * Set if the second page repeats the first, so that the directory may lack paging. `full`: the first page had as many
   * rows as requested, so there may be more; `beyond`: it had more than requested.
   */
  readonly repeats: 'full' | 'beyond' | undefined
}

const FRUITLESS_PAGES = 20

/** The position of a walk. */
export class Position {
  pages = 0
  rows = 0
  total: number | undefined
  readonly #count: number
  #firstRows = 0
  #fruitfulPages = 0
  #unusable = 0
  #unsteady = false
  #fruitless = 0
  // Of this walk alone: in a second walk every group is known.
  readonly #seen = new Set<string>()
  readonly #cursors = new Set<string>()

  constructor(first: Query) {
    this.#count = Number(first['count'] ?? 0)
  }

  get groups(): number {
    return this.#seen.size
  }

  isTotalReached(): boolean {
    return this.total !== undefined && this.rows >= this.total
  }

  take(page: Page): void {
    const known = this.#seen.size
    for (const { scimId } of page.groups) this.#seen.add(scimId)
    if (page.total !== undefined) {
      this.#unsteady ||= this.total !== undefined && this.total !== page.total
      this.total = page.total
    }
    this.pages += 1
    if (this.pages === 1) this.#firstRows = page.rows
    const bringsNothing = this.#seen.size === known && !this.#isUnusable(page)
    this.#fruitless = bringsNothing ? this.#fruitless + 1 : 0
    if (bringsNothing) return
    this.#fruitfulPages += 1
    this.rows += page.rows
    this.#unusable += page.rows - page.groups.length
  }

  // Limited by the total, which counts groups only.
  #isUnusable({ groups, rows }: Page): boolean {
    return groups.length === 0 && rows > 0 && this.total !== undefined && this.rows + rows <= this.total
  }

  /**
   * Whether the list ends with this page, in paging by index. It goes on until a page has nothing new, even past the
   * total, since in some directories the total is the page size. A short page that reaches the total ends it, since
   * some directories fail on a page past the end.
   */
  isEnd(page: Page): boolean {
    if (page.nextCursor !== undefined) return false
    return this.#fruitless > 0 || (page.rows < this.#count && this.isTotalReached())
  }

  refuseLoop(cursor: string | undefined): void {
    if (cursor === undefined) return
    if (this.#cursors.has(cursor) || this.#fruitless > FRUITLESS_PAGES) {
      throw new SyncFailure('directory_incomplete', 'the cursors of the list of groups lead nowhere')
    }
    this.#cursors.add(cursor)
  }

  end(query: Query, last?: Page): WalkEnd {
    const isRepeated = this.pages === 2 && this.#fruitless === 1 && last !== undefined && last.rows > 0
    return {
      total: this.total,
      pages: this.#fruitfulPages,
      rows: this.rows,
      groups: this.groups,
      unusable: this.#unusable,
      unsteady: this.#unsteady,
      endStated: 'cursor' in query,
      repeats: isRepeated ? (this.#firstRows === this.#count ? 'full' : 'beyond') : undefined,
    }
  }
}
