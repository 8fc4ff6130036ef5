import { parseRules } from '@headgate/rules'
import { describe, expect, it } from 'vitest'
import { ordersFile } from '../test-support/rules.ts'
import { type ReadRequest, readRequest } from './request.ts'

const file = parseRules(ordersFile('memory'), { file: 'headgate.yaml' })

function read(method: string, target: string, header: readonly string[] = [], ip?: string): ReadRequest {
  const found = readRequest(file, method, target, { header, ...(ip === undefined ? {} : { ip }) })
  if ('problem' in found) throw new Error(found.problem)
  return found
}

describe('a request is read from the command line as the gateway would read it', () => {
  it('with its method in upper case, its path normalised, its query, and its route', () => {
    const { request, notes } = read('get', '/api//x/../orders?page=2')
    expect(request).toMatchObject({ method: 'GET', path: '/api/orders', query: 'page=2', host: '', route: '/api/*' })
    expect(notes).toEqual(['the path is read as /api/orders'])
    expect(read('GET', '/other').request.route).toBe(undefined)
  })

  it('with the host of a whole URL, else of the field', () => {
    expect(read('GET', 'https://Shop.Example:8443/api/x').request).toMatchObject({
      host: 'shop.example',
      path: '/api/x',
    })
    expect(read('GET', '/', ['Host: Shop.Example.:80']).request.host).toBe('shop.example')
  })

  it('with fields by their lower-case name, one value for each time, as bytes', () => {
    const { request } = read('GET', '/', ['X-User-Id: 42', 'x-user-id:43', 'x-name: é', 'x-empty:'])
    expect(request.header('x-user-id')).toEqual(['42', '43'])
    expect(request.header('x-name')).toEqual(['Ã©'])
    expect(request.header('x-empty')).toEqual([''])
    expect(request.header('x-none')).toBe(undefined)
  })

  it('from this machine unless an address is given', () => {
    expect(read('GET', '/').request).toMatchObject({ ip: '127.0.0.1', trusted: false })
    expect(read('GET', '/', [], '2001:DB8::1').request.ip).toBe('2001:db8::1')
    expect(read('GET', '/', [], 'unix').request).toMatchObject({ ip: 'unix', trusted: true })
  })

  it('believes trusted proxies about the caller, and nobody else', () => {
    const field = ['X-Forwarded-For: 203.0.113.9']
    const trusted = read('GET', '/', field, '10.1.2.3')
    expect(trusted.request).toMatchObject({ ip: '203.0.113.9', trusted: true })
    expect(trusted.notes).toEqual(['the caller is 203.0.113.9, from x-forwarded-for: 10.1.2.3 is trusted'])
    const other = read('GET', '/', field)
    expect(other.request).toMatchObject({ ip: '127.0.0.1', trusted: false })
    expect(other.notes).toEqual(['x-forwarded-for is not read: 127.0.0.1 is no trusted proxy'])
  })

  it.each([
    ['/a%2Fb', [], 'the path has %2F'],
    ['/', ['host: a b'], 'the Host is not a host with an optional port'],
    ['/a b', [], 'the path has white space, a control character or one beyond a byte'],
  ])('and is refused where the gateway would refuse it: %s %j', (target, header, problem) => {
    expect(readRequest(file, 'GET', target, { header })).toEqual({ problem })
  })

  it.each([
    ['/api', 'GET', {}, '"/api" is not a method; write the method, then the path: headgate explain GET /api'],
    ['GET', 'api', {}, '"api" is not a path; write one that begins with /, or a whole URL'],
    ['GET', '/', { header: ['x-user-id'] }, `-H "x-user-id" is not a field; write -H 'name: value'`],
    [
      'GET',
      '/',
      { ip: '300.1.1.1' },
      '--ip 300.1.1.1 is not an address; write one such as 203.0.113.7 or 2001:db8::1, or unix for a unix socket',
    ],
  ])('what is no request at all is wrong usage: %s %s %j', (method, target, options, message) => {
    expect(() => readRequest(file, method, target, options)).toThrow(
      expect.objectContaining({ code: 'HEADGATE_USAGE', message }),
    )
  })
})
