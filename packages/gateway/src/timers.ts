/** The longest time that a timer of Node's can wait, in ms: 24.8 days. Above, it fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1
