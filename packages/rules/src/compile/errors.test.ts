import { HeadgateError } from 'headgate'
import { describe, expect, it } from 'vitest'
import { parseRules } from '../load.ts'
import { RuleFileError } from '../problem.ts'
import { errors } from '../test-support/rules.ts'

const rule = (rest: string) => `rules: [{ name: a, description: d, limits: [{ by: ip, limit: 5/s }], ${rest} }]`
const gateway = (rest: string) => `gateway: { ${rest} }\nrules: []`

describe('errors', () => {
  it.each([
    ['rules: [{ nam: a, description: d, deny: true }]', 'rules[0].nam'],
    ['rules: [{ name: a, description: d, limit: [{ by: ip, limit: 5/s }] }]', 'rules[0].limit'],
    ['rules: [{ name: a, description: d, limits: [{ by: ip, limt: 5/s }] }]', 'rules[0].limits[0].limt'],
    ['rules: [{ name: a, description: d, limits: [{ bye: ip, limit: 5/s }] }]', 'rules[0].limits[0].bye'],
    ['dimensions: { u: { heder: x } }\nrules: []', 'dimensions.u.heder'],
    ['gateway: { routs: [] }\nrules: []', 'gateway.routs'],
    ['gateway: { routes: [{ paht: /, upstream: "http://h" }] }\nrules: []', 'gateway.routes[0].paht'],
    ['admin: { listen: ":1", tokn: abc }\nrules: []', 'admin.tokn'],
    ['store: redis://h\ninstnces: 2\nrules: []', 'instnces'],
    ['rules: [{ name: a, descripton: d, deny: true }]', 'rules[0].descripton'],
    ['rule: []', 'rule'],
  ])('name a misspelt key once, and not also as missing: %s', (text, path) => {
    let problems: readonly { path: string; message: string }[] = []
    try {
      parseRules(text, { file: 'h.yaml', env: {} })
    } catch (error) {
      problems = (error as RuleFileError).problems
    }
    expect(problems.map((problem) => problem.path)).toEqual([path])
    expect(problems[0]?.message).toContain('is no key that is known here; did you mean ')
  })

  it('list as known only keys that are supported', () => {
    const places = ['', 'dimensions.t', 'rules[0]', 'rules[0].match', 'rules[0].limits[0]']
    const text = `xyzzy: 1
dimensions: { t: { header: t, xyzzy: 1 } }
rules: [{ name: a, xyzzy: 1, match: { xyzzy: 1 }, limits: [{ by: ip, limit: 5/s, xyzzy: 1 }] }]`
    const found = errors(text)
    expect(found).toHaveLength(places.length)
    for (const later of ['slotBy', 'jwt', 'schedule', 'descriptor', 'learning'])
      expect(found.join('\n')).not.toContain(later)
  })

  it('come all in one run, by line, in the form of compilers (traefik/traefik#8724)', () => {
    const text = `store: memcached://h
timout: 50ms
dimensions:
  user: { header: x-user, mising: ip }
rules:
  - name: a b
    limits:
      - { by: usr, limit: 5/s, burst: 0 }
      - { by: user, limit: 6O }
    mode: enforc
    mode: off
`
    let thrown: unknown
    try {
      parseRules(text, { file: 'etc/h.yaml', env: {} })
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(RuleFileError)
    expect(HeadgateError.is(thrown) && thrown.code).toBe('HEADGATE_RULES_INVALID')
    expect(String((thrown as RuleFileError).message).split('\n')).toEqual([
      'etc/h.yaml:1:8: error[HEADGATE_RULES_VALUE]: store: is no store that is known; write memory, redis://host:6379, rediss://host:6379, redis+cluster://host:6379,host:6379 or redis+sentinel://user:password@host1:26379,host2:26379/MASTER/0',
      'etc/h.yaml:2:1: error[HEADGATE_RULES_UNKNOWN_KEY]: timout: is no key that is known here; did you mean timeout',
      'etc/h.yaml:4:27: error[HEADGATE_RULES_UNKNOWN_KEY]: dimensions.user.mising: is no key that is known here; did you mean missing',
      'etc/h.yaml:6:11: error[HEADGATE_RULES_VALUE]: rules[0].name: "a b" is not a name; write a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -',
      'etc/h.yaml:8:15: error[HEADGATE_RULES_REFERENCE]: rules[0].limits[0].by: "usr" is no dimension; define it under dimensions, or write one that is known; did you mean user',
      'etc/h.yaml:8:39: error[HEADGATE_RULES_RANGE]: rules[0].limits[0].burst: 0 is out of range; write a whole number from 1 to 9007199254740991',
      expect.stringContaining(
        'etc/h.yaml:9:28: error[HEADGATE_RULES_VALUE]: rules[0].limits[1].limit: "6O" is not a rate; write ',
      ),
      'etc/h.yaml:10:11: error[HEADGATE_RULES_VALUE]: rules[0].mode: "enforc" is not right here; write enforce, shadow or off; did you mean enforce',
      'etc/h.yaml:11:5: error[HEADGATE_RULES_DUPLICATE]: rules[0].mode: stands twice; keep one',
    ])
  })

  it.each([
    ['rules: []\nRules: []', '2:1 UNKNOWN_KEY Rules: is no key that is known here; did you mean rules'],
    [rule('Mode: off'), 'UNKNOWN_KEY rules[0].Mode: is no key that is known here; did you mean mode'],
    [
      rule('mode: Enforce'),
      'VALUE rules[0].mode: "Enforce" is not right here; write enforce, shadow or off; did you mean enforce',
    ],
    [
      rule('match: { methods: [GET] }'),
      'UNKNOWN_KEY rules[0].match.methods: is no key that is known here; did you mean method',
    ],
    [rule('match: { method: get }'), 'did you mean GET'],
    [
      rule('match: { method: PSOT }'),
      '"PSOT" is no method that is known, so no request has it; write one such as GET or POST; did you mean POST',
    ],
    [rule('match: { method: [GET, BREW] }'), 'match.method[1]: "BREW" is no method that is known'],
    [rule('xyz: 1'), 'known here: name, description, match'],
    [rule('schedul: 1'), 'did you mean schedule, which is not supported yet'],
    ['rules: [{ name: a, limits: [{ by: ip }] }]', 'VALUE rules[0].limits[0].limit: is missing; write a whole number'],
    ['rules: [{ name: a, limits: [{ limit: 5/s }] }]', 'VALUE rules[0].limits[0].by: is missing; write'],
    ['rules: [{ limits: [{ by: ip, limit: 5/s }] }]', 'VALUE rules[0].name: is missing; write a letter'],
    ['rules: [{ name: a, limits: }]', 'rules[0].limits: is empty'],
    ['rules: [{ name: a, limits: [] }]', 'rules[0].limits: is an empty list'],
    [rule('match: { header: {} }'), 'VALUE rules[0].match.header: is an empty mapping; write at least one field'],
    [rule('match: { path: /a, not: { header: {} } }'), 'rules[0].match.not.header: is an empty mapping'],
    [rule('match: { header: }'), 'rules[0].match.header: is empty'],
    ['rules: [{ name: a }]', 'rules[0]: does nothing; write limits, allow: true or deny: true'],
    ['rules: [{ name: 5, deny: true }]', 'rules[0].name: 5 reads as a number or a flag here; quote the value'],
    [rule('match: { header: { x-version: 2 } }'), '2 reads as a number or a flag here; quote the value'],
    ['rules: [{ name: a, limits: [{ by: ip, limit: 5/s, overrides: { "": 1/s } }] }]', 'is an empty value'],
    ['rules: [a]', 'rules[0]: "a" is not a mapping'],
    ['rules: { name: a }', 'rules: a mapping is not a list'],
    ['<<: { a: 1 }\nrules: []', 'UNKNOWN_KEY ["<<"]: is a merge key'],
    ['? [a]\n: 1\nrules: []', 'a key is a list'],
  ])('of %s: %s (traefik/traefik#7129)', (text, message) => {
    expect(errors(text).join('\n')).toContain(message)
  })

  it.each([
    ['two rules of one name', 'rules: [{ name: a, deny: true }, { name: a, deny: true }]', 'DUPLICATE rules[1].name'],
    [
      'two limits of one name',
      'rules: [{ name: a, limits: [{ by: ip, limit: 1/s }, { by: ip, limit: 9/m }] }]',
      'give it a name: of its own',
    ],
    [
      'one dimension twice',
      'rules: [{ name: a, limits: [{ by: [ip, ip], limit: 1/s }] }]',
      'DUPLICATE rules[0].limits[0].by[1]',
    ],
    ['allow and deny', 'rules: [{ name: a, allow: true, deny: true }]', 'CONFLICT rules[0].allow'],
    ['deny with limits', rule('deny: true'), 'CONFLICT rules[0].limits'],
    ['deny with a cost', 'rules: [{ name: a, deny: true, cost: 2 }]', 'CONFLICT rules[0].cost'],
    [
      'burst of a window',
      'rules: [{ name: a, limits: [{ by: ip, limit: 1/s, burst: 2, algorithm: fixed-window }] }]',
      'CONFLICT rules[0].limits[0].burst',
    ],
    [
      'align of a bucket',
      'rules: [{ name: a, limits: [{ by: ip, limit: 1/s, align: clock }] }]',
      'CONFLICT rules[0].limits[0].align',
    ],
    [
      'overrides of a composite',
      'rules: [{ name: a, limits: [{ by: [ip, host], limit: 1/s, overrides: { a: 2/s } }] }]',
      'CONFLICT rules[0].limits[0].overrides',
    ],
    [
      'overrides of global',
      'rules: [{ name: a, limits: [{ by: global, limit: 1/s, overrides: { a: 2/s } }] }]',
      'CONFLICT rules[0].limits[0].overrides',
    ],
    [
      'two spellings of one override',
      'dimensions: { m: { query: m, normalize: email } }\nrules: [{ name: a, limits: [{ by: m, limit: 1/s, overrides: { a@x: 2/s, A@X: 3/s } }] }]',
      'DUPLICATE rules[0].limits[0].overrides["A@X"]',
    ],
    [
      'an override for an address that is none',
      'rules: [{ name: a, limits: [{ by: ip, limit: 1/s, overrides: { 203.0.113.300: 2/s } }] }]',
      'VALUE rules[0].limits[0].overrides["203.0.113.300"]: is not an address; write one such as',
    ],
    [
      'an override for a network that is none',
      'dimensions: { n: { address: { v4: 24 } } }\nrules: [{ name: a, limits: [{ by: n, limit: 1/s, overrides: { 203.0.113.0/24: 2/s, office: 3/s } }] }]',
      'VALUE rules[0].limits[0].overrides.office: is not an address; write one such as',
    ],
    [
      'an inner wildcard',
      'rules: [{ name: a, limits: [{ by: ip, limit: 1/s, overrides: { "a*b": 2/s } }] }]',
      'only one final *',
    ],
    ['max below min', rule('cost: { header: c, min: 5, max: 2 }'), 'CONFLICT rules[0].cost.max'],
    ['an empty not', rule('match: { not: {} }'), 'CONFLICT rules[0].match.not'],
    [
      'trusted hops and proxies',
      gateway('trustedProxies: [10.0.0.0/8], trustedHops: 1'),
      'CONFLICT gateway.trustedHops',
    ],
    [
      'routes for the same paths',
      gateway('routes: [{ path: /a, upstream: "http://h" }, { path: /A/, upstream: "http://h" }]'),
      'serves the same paths as gateway.routes[0]',
    ],
    [
      'a prefix that cannot be stripped',
      gateway('routes: [{ path: /a, upstream: "http://h", stripPrefix: true }]'),
      'CONFLICT gateway.routes[0].stripPrefix',
    ],
    [
      'an admin address for everybody without a token',
      'admin: { listen: ":8083" }\nrules: []',
      'CONFLICT admin.listen',
    ],
    ['one token for both', 'admin: { token: abc, readToken: abc }\nrules: []', 'CONFLICT admin.readToken'],
    ['a dimension that is built in', 'dimensions: { ip: { header: a } }\nrules: []', 'CONFLICT dimensions.ip'],
    [
      'a dimension with two sources',
      'dimensions: { a: { header: a, query: b } }\nrules: []',
      'CONFLICT dimensions.a.query',
    ],
    ['a dimension with none', 'dimensions: { a: { missing: ip } }\nrules: []', 'VALUE dimensions.a: has no source'],
    [
      'a parameter that no path has',
      'dimensions: { o: { path: id } }\nrules: [{ name: a, match: { path: /a/:ID }, limits: [{ by: o, limit: 1/s }] }]',
      'REFERENCE rules[0].limits[0].by',
    ],
    ['a name with a colon', 'rules: [{ name: "a:b", deny: true }]', 'VALUE rules[0].name'],
    [
      'a limit name with a plus',
      'rules: [{ name: a, limits: [{ name: "a+b", by: ip, limit: 1/s }] }]',
      'VALUE rules[0].limits[0].name',
    ],
    [
      'a dimension name with a colon',
      'dimensions: { "a:b": { header: a } }\nrules: []',
      'VALUE dimensions["a:b"]: "a:b" is not a name',
    ],
    ['a path that no request has', rule('match: { path: /a//b }'), 'paths arrive normalised; write /a/b'],
    [
      'an upstream with a path',
      gateway('routes: [{ path: /a, upstream: "http://h/x" }]'),
      'more than an origin: paths and queries come from the request; write http://h',
    ],
    ['an upstream without a scheme', gateway('routes: [{ path: /a, upstream: "h:80" }]'), 'is not an origin'],
    ['a number for a duration', 'timeout: 50\nrules: []', 'VALUE timeout: 50 is not right here; write a duration'],
    ['no time at all', 'timeout: 0ms\nrules: []', 'VALUE timeout'],
    ['a duration beyond timers', 'timeout: 30d\nrules: []', 'RANGE timeout'],
    ['a network that is none', rule('match: { ip: 10.0.0.0/33 }'), 'is not a network'],
    ['a host with a port', rule('match: { host: "a:80" }'), 'is not a host'],
    ['a header that is none', rule('match: { header: { "a b": c } }'), 'is not a field'],
    ['an exception that is none', gateway('paths: { allow: ["%20"] }'), 'is nothing that can be allowed'],
    [
      'an origin as no browser sends it',
      gateway('cors: { origins: ["https://Shop.example/"] }'),
      'is not as browsers send it; write https://shop.example',
    ],
  ])('name %s', (_what, text, message) => {
    expect(errors(text).join('\n')).toContain(message)
  })
})
