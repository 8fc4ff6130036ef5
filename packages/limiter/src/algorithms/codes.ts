/** What a stored value begins with. `codes.lua` holds the same numbers. */
export const TOKEN_BUCKET = 1
export const FIXED_WINDOW = 2
export const LEAKY_BUCKET = 3
export const SLIDING_WINDOW = 4
export const SLIDING_LOG = 5
export const CONCURRENCY = 6
export const SINCE = 14
export const MARKED = 15
