import { setTimeout as sleep } from 'node:timers/promises'
import type { Decision } from './decision.ts'
import { LONGEST_TIMER_MS } from './duration.ts'
import { HeadgateError, InvalidArgumentError, show } from './errors.ts'
import { refuseUnknown } from './options.ts'
import { spanOf } from './ways.ts'

type Keys = string | Readonly<Record<string, string>>

/** The part of a limiter that wrapping needs. */
interface Limiting {
  check(keys: Keys, options: { cost: number }): Promise<Decision>
  acquire(keys: Keys, options: { cost: number; timeoutMs: number }): Promise<Decision>
}

/** A wrapped function was refused; `decision` says why and for how long. */
export class RateLimitedError extends HeadgateError {
  readonly decision: Decision

  constructor(decision: Decision) {
    const { limitedBy = 'the store', retryAfterMs } = decision
    const wait = Number.isFinite(retryAfterMs) ? `try again in ${Math.ceil(retryAfterMs)} ms` : 'it can never succeed'
    super('HEADGATE_LIMITED', `refused by ${limitedBy}; ${wait}`)
    this.decision = decision
  }
}

export interface WrapOptions<Args extends unknown[]> {
  /** The keys, or what makes them of the arguments; default `''`, one budget for all calls. */
  key?: Keys | ((...args: Args) => Keys)
  /** Units a call takes, or what makes them of the arguments; default 1. */
  cost?: number | ((...args: Args) => number)
  /** How long a call may wait in line, in ms; default 0: it is refused at once. */
  waitMs?: number
}

/** How often slots are renewed within the time that they last, while their call runs. */
const RENEWALS = 3

/**
 * The function, limited: a call that is refused rejects with {@link RateLimitedError} and runs nothing. Slots of
 * concurrency limits are held while it runs, renewed, and given back when it settles.
 */
export function wrap<This, Args extends unknown[], Result>(
  limiter: Limiting,
  fn: (this: This, ...args: Args) => Result | Promise<Result>,
  options: WrapOptions<Args> = {},
): (this: This, ...args: Args) => Promise<Result> {
  if (typeof fn !== 'function') throw new InvalidArgumentError('fn', `${show(fn)} is not a function`)
  refuseUnknown(options, ['key', 'cost', 'waitMs'], 'wrap')
  const { key = '', cost = 1, waitMs = 0 } = options
  spanOf(waitMs, 'waitMs', 0)
  return async function limited(this: This, ...args: Args): Promise<Result> {
    const keys = typeof key === 'function' ? key(...args) : key
    const units = typeof cost === 'function' ? cost(...args) : cost
    const decision =
      waitMs > 0
        ? await limiter.acquire(keys, { cost: units, timeoutMs: waitMs })
        : await limiter.check(keys, { cost: units })
    if (!decision.allowed) throw new RateLimitedError(decision)
    const renewal = renewing(decision)
    try {
      await turn(decision.delayMs)
      return await fn.apply(this, args)
    } finally {
      clearInterval(renewal)
      // What cannot be given back now lapses by itself.
      await decision.release?.().catch(() => undefined)
    }
  }
}

/** A timer cannot wait for more than 24 days. */
async function turn(delayMs: number): Promise<void> {
  for (let leftMs = Math.ceil(delayMs); leftMs > 0; leftMs -= LONGEST_TIMER_MS) {
    await sleep(Math.min(leftMs, LONGEST_TIMER_MS))
  }
}

/** Keeps the slots of a call; one that lapsed all the same is not taken again. */
function renewing({ slotMs, renew }: Decision): NodeJS.Timeout | undefined {
  if (slotMs === undefined || renew === undefined) return undefined
  const everyMs = Math.min(slotMs / RENEWALS, LONGEST_TIMER_MS)
  return setInterval(() => void renew().catch(() => false), everyMs).unref()
}

/** A decorator for methods: as {@link wrap}, for standard (TC39) and for TypeScript's experimental decorators. */
export function rateLimited<Args extends unknown[]>({
  limiter,
  ...options
}: WrapOptions<Args> & { limiter: Limiting }) {
  // biome-ignore lint/suspicious/noExplicitAny: a decorator takes methods of every form
  return (target: any, context: any, descriptor?: PropertyDescriptor): any => {
    if (descriptor !== undefined) {
      descriptor.value = wrap(limiter, descriptor.value, options)
      return descriptor
    }
    if (context?.kind === 'method') return wrap(limiter, target, options)
    throw new InvalidArgumentError('rateLimited', 'it decorates methods only')
  }
}
