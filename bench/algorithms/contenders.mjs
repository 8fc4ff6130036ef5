// Headgate with each of its algorithms, and with what is judged beside a check. Every limit is so wide that nothing
// is refused within a run; README.md says why each number is as it is.
import {
  concurrency,
  createEngine,
  createLimiter,
  fixedWindow,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from 'headgate'
import { headgateOk, headgateStore, NAME } from '../library/contenders.mjs'

const wide = { limit: 10_000, period: '1d' }
/** Half a second a slice, so that a run goes through several of them and none of its keys expires. */
const sliced = { limit: 10_000, period: '5s', slices: 10 }

const limits = {
  'token bucket': tokenBucket(wide),
  'leaky bucket': leakyBucket(wide),
  'fixed window': fixedWindow(wide),
  'calendar window': fixedWindow({ limit: 10_000, period: 'day', align: 'calendar', timeZone: 'Europe/Berlin' }),
  'sliding window': slidingWindow(sliced),
  'sliding window, strict': slidingWindow({ ...sliced, strict: true }),
  // A log is for small limits: 100, of which a run takes some ten.
  'sliding log': slidingLog({ limit: 100, period: '1d' }),
  'concurrency, held': concurrency({ limit: 100, ttl: '1h' }),
}

async function alone(spec, limit) {
  const { store } = await headgateStore(spec)
  const limiter = createLimiter({ name: NAME, store, limit })
  return { check: (key) => limiter.check(key), ok: headgateOk }
}

/** Takes a slot and gives it back: two operations a decision. A slot that the store did not take back in time is wrong. */
async function takenAndReleased(spec) {
  const { check, ok } = await alone(spec, limits['concurrency, held'])
  async function turn(key) {
    const decision = await check(key)
    const lost = await decision.release?.().catch((error) => error)
    return lost === undefined && ok(decision)
  }
  return { check: turn, ok: (done) => done }
}

const live = (name) => ({ rule: NAME, name, limit: limits['token bucket'] })
const tried = { ...live('user'), limit: tokenBucket({ limit: 5000, period: '1d' }), group: 'candidate' }
const watched = { ...live('user'), rule: 'watched', group: 'shadow' }
const one = [live('user')]
const three = [live('global'), live('ip'), live('user')]

/** All items with the same key. */
async function engine(spec, items) {
  const { store } = await headgateStore(spec)
  const judge = createEngine({ store })
  return { check: (key) => judge.check(items.map((item) => ({ ...item, key }))), ok: headgateOk }
}

/** Name → what makes it, from the port of Redis. */
export const algorithms = {
  ...Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, (spec) => alone(spec, limit)])),
  concurrency: takenAndReleased,
  'one limit': (spec) => engine(spec, one),
  'one limit, candidate': (spec) => engine(spec, [...one, tried]),
  'one limit, shadow rule': (spec) => engine(spec, [...one, watched]),
  'three limits': (spec) => engine(spec, three),
  'three limits, candidate of one': (spec) => engine(spec, [...three, tried]),
  'three limits, shadow rule of one': (spec) => engine(spec, [...three, watched]),
}
