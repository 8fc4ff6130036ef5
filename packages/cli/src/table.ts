import { stripVTControlCharacters } from 'node:util'

/** Rows with their columns aligned, whatever their colours; the last column is as long as it likes. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, widthOf(cell))
    })
  }
  return rows.map((row) =>
    row
      .map((cell, i) => cell + ' '.repeat((widths[i] ?? 0) - widthOf(cell)))
      .join('  ')
      .trimEnd(),
  )
}

function widthOf(cell: string): number {
  return stripVTControlCharacters(cell).length
}
