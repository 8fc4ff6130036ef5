import { isLoopback, type ListenAddress, parseListen } from '../listen.ts'
import { DEFAULT_PATHS, type PathException, type PathSettings } from '../paths/normalize.ts'
import type { AdminSettings, GatewaySettings } from '../rule-file.ts'
import { exception } from '../schema/gateway.ts'
import { durationMs } from '../schema/values.ts'
import type { Report } from '../source/report.ts'
import { type FileValues, listed } from './context.ts'
import { compileRoutes } from './routes.ts'

type GatewayValues = NonNullable<FileValues['gateway']>

const DEFAULT_LISTEN: ListenAddress = { kind: 'tcp', host: '127.0.0.1', port: 8080 }
const DEFAULT_ADMIN: ListenAddress = { kind: 'tcp', host: '127.0.0.1', port: 8083 }

export function pathSettings(values: GatewayValues | undefined): PathSettings {
  const paths = values?.paths
  if (paths === undefined) return DEFAULT_PATHS
  return {
    caseSensitive: paths.case === 'sensitive',
    trailingSlashStrict: paths.trailingSlash === 'strict',
    allow: listed(paths.allow, []).map(({ value }) => exception(value) as PathException),
  }
}

/** The gateway's settings, and its routes in the order in which a path tries them. */
export function compileGateway(values: GatewayValues, paths: PathSettings, report: Report): GatewaySettings {
  if (values.workers !== undefined && values.workers > 1) {
    report.add(
      ['gateway', 'workers'],
      'HEADGATE_RULES_UNSUPPORTED',
      '{} workers are not supported yet; write 1, and run more processes',
    )
  }
  const trustedProxies = listed(values.trustedProxies, []).map(({ value }) => value)
  if (values.trustedHops !== undefined && values.trustedProxies !== undefined) {
    report.add(
      ['gateway', 'trustedHops'],
      'HEADGATE_RULES_CONFLICT',
      'contradicts trustedProxies; keep one of the two',
      { at: 'key' },
    )
  }
  const none = values.routes === undefined || values.routes.length === 0
  if (none && !report.failedWithin(['gateway', 'routes'])) {
    report.warn(['gateway'], 'there are no routes, so every request that passes is answered 404; add routes', 'key')
  }
  return {
    listen: parseListen(values.listen ?? '') ?? DEFAULT_LISTEN,
    workers: 1,
    drainMs: durationMs(values.drain ?? '10s') ?? 0,
    paths,
    cors: { origins: listed(values.cors?.origins, []).map(({ value }) => value) },
    trustedProxies,
    ...(values.trustedHops === undefined ? {} : { trustedHops: values.trustedHops }),
    clientAddress: (values.clientAddress ?? 'x-forwarded-for').toLowerCase(),
    routes: compileRoutes(values.routes ?? [], paths, report),
  }
}

export function compileAdmin(values: NonNullable<FileValues['admin']>, report: Report): AdminSettings {
  const listen = parseListen(values.listen ?? '') ?? DEFAULT_ADMIN
  const token = values.token === '' ? undefined : values.token
  const readToken = values.readToken === '' ? undefined : values.readToken
  if (!isLoopback(listen) && token === undefined && !report.failedWithin(['admin', 'token'])) {
    report.add(
      ['admin', 'listen'],
      'HEADGATE_RULES_CONFLICT',
      '{} can be reached from other machines, and there is no token; set token, or listen on 127.0.0.1',
    )
  }
  if (token !== undefined && token === readToken) {
    report.add(
      ['admin', 'readToken'],
      'HEADGATE_RULES_CONFLICT',
      'is the same as token, so that who may read may write; use another',
    )
  }
  return {
    listen,
    ...(token === undefined ? {} : { token }),
    ...(readToken === undefined ? {} : { readToken }),
    hosts: listed(values.hosts, []).map(({ value }) => value.toLowerCase()),
  }
}
