/** Options that every command has. */
export interface CommonOptions {
  readonly config?: string
  readonly json?: boolean
}

export interface ExplainOptions extends CommonOptions {
  /** `name: value`, as often as given. */
  readonly header?: readonly string[]
  readonly ip?: string
}

export interface KeyOptions extends CommonOptions {
  /** `dimension=value`, or a bare value, as often as given. */
  readonly key?: readonly string[]
}

export interface ValidateOptions extends CommonOptions {
  readonly strict?: boolean
}
