/** Rules for tests of `explain`, `peek` and `reset`. */
export function ordersFile(store: string): string {
  return `
store: ${store}
instances: 2
gateway:
  trustedProxies: [10.0.0.0/8]
  routes: [{ path: /api/*, upstream: ["http://127.0.0.1:1"] }]
dimensions:
  user: { header: x-user-id }
  tenant: { header: x-tenant, missing: skip }
  must: { header: x-must, missing: deny }
rules:
  - name: orders
    description: d
    match: { path: /api/orders, method: GET }
    limits:
      - { by: global, limit: 800/s, burst: 120 }
      - { by: user, limit: 5/m, overrides: { acme: unlimited, "vip-*": 100/m } }
      - { by: [user, route], limit: 60/m }
      - { by: tenant, limit: 1000/day, algorithm: fixed-window }
  - name: login
    description: d
    match: { path: /api/login, method: POST }
    limits: [{ by: ip, limit: 2/m }]
  - name: reports
    description: d
    match: { path: /api/reports }
    limits: [{ by: global, limit: 100/h }, { by: user, limit: 5/m }]
  - { name: strict, description: d, match: { path: /api/strict }, limits: [{ by: must, limit: 1/s }] }
  - { name: staff, description: d, match: { path: /api/*, header: { x-staff: "*" } }, allow: true }
  - { name: banned, description: d, match: { ip: 198.51.100.0/24 }, deny: true }
  - { name: later, description: d, mode: off, limits: [{ by: ip, limit: 1/s }] }
`
}
