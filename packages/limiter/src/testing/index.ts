export { DECIDE_TEST_LUA, DECIDE_TEST_SHA1 } from './decide-test.generated.ts'
export { type FakeClock, fakeClock } from './fake-clock.ts'
export { redisStoreOnClock } from './redis-on-clock.ts'
export { type ConformanceCase, type OpenStore, storeConformance } from './store-conformance.ts'
