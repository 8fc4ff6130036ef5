export type { IoredisClient } from './ioredis.ts'
export type { NodeRedisClient } from './node-redis.ts'
export { type RedisClient, type RedisStoreOptions, redisStore } from './redis-store.ts'
