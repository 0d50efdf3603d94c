/** The output of our programs, for tests. */

/** Runs `work` and returns its output. */
export async function printedBy(work: (print: (line: string) => void) => Promise<void>): Promise<string> {
  const lines: string[] = []
  await work((line) => void lines.push(line))
  return lines.join('\n')
}

/** The rows of all Markdown tables in a text as lists of cells, with headers and without rulers. */
export function tableRows(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('|') && !line.startsWith('| ---'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}
