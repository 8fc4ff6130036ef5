// Numbers as the documents show them. What was not measured is –.
const NONE = '–'

export function cell(value, digits, unit = '') {
  if (!Number.isFinite(value)) return NONE
  const text = value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return unit === '' ? text : `${text} ${unit}`
}

export const count = (value) => cell(value, 0)

export function percent(share) {
  if (!Number.isFinite(share)) return NONE
  return cell(100 * share, share !== 0 && share < 0.1 ? 1 : 0, '%')
}

export function bytesText(bytes) {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return cell(bytes / 1000 ** power, power === 0 || bytes / 1000 ** power >= 10 ? 0 : 1, units[power])
}
