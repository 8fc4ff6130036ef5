export { hostName } from './front/host-name.ts'
export { defaultLogger, type Logger } from './log.ts'
export { type GatewayOptions, type RunningGateway, startGateway } from './start.ts'
export { createStore } from './store.ts'
