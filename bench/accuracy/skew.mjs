// Loaded before everything else of a caller (`--import`): its wall clock is wrong by SKEW_MS, its monotonic clock
// (process.hrtime, performance.now) is right. So it is with a machine whose clock was set wrongly.
const skewMs = Number(process.env.SKEW_MS ?? 0)

if (skewMs !== 0) {
  const { now } = Date
  const Skewed = new Proxy(Date, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now() + skewMs] : args, newTarget),
    apply: () => new Skewed().toString(),
  })
  Date.now = () => now() + skewMs
  globalThis.Date = Skewed
  const { timeOrigin } = performance
  Object.defineProperty(performance, 'timeOrigin', { value: timeOrigin + skewMs, configurable: true })
}
