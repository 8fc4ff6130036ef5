/** By code: what the process was told. */
const told = new Set<string>()

/** Tells the process once, also where nobody listens to an engine, which promise cannot be kept, and the way out. */
export function warnOnce(code: string, message: string): void {
  if (told.has(code)) return
  told.add(code)
  process.emitWarning(message, { type: 'HeadgateWarning', code })
}
