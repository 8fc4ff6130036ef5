export { DECIDE_TEST_LUA, DECIDE_TEST_SHA1 } from './decide-test.generated.ts'
export { type FakeClock, fakeClock } from './fake-clock.ts'
