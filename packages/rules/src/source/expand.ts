/** A string with its variables put in. */
export interface Expansion {
  readonly text: string
  /** Whether anything came from the environment (or a default): then the text is never shown. */
  readonly expanded: boolean
  /** What is wrong, in words that hold names of variables but no values. */
  readonly problem?: string
}

export type Environment = Readonly<Record<string, string | undefined>>

const VARIABLE = /\$\$\{|\$\{([^}]*)\}|\$\{/g
const INSIDE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/

/**
 * `${X}` is the variable X, which must be set and not empty; `${X:-d}` gives d where it is not;
 * `$${` is a literal `${`. Nothing is expanded inside what was put in.
 */
export function expand(text: string, env: Environment): Expansion {
  if (!text.includes('${')) return { text, expanded: false }
  let problem: string | undefined
  let expanded = false
  const result = text.replace(VARIABLE, (whole, inside: string | undefined) => {
    if (whole === '$${') return '${'
    const parts = inside === undefined ? null : INSIDE.exec(inside)
    if (!parts) {
      problem ??= 'has a "${" that is no variable; write ${NAME}, ${NAME:-default}, or $${ for the text itself'
      return whole
    }
    expanded = true
    const [, name = '', fallback] = parts
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value !== undefined && value !== '') return value
    if (fallback === undefined) {
      problem ??= `the environment variable ${name} is not set or empty; set it, or write \${${name}:-default}`
    }
    return fallback ?? ''
  })
  return problem === undefined ? { text: result, expanded } : { text: result, expanded, problem }
}
