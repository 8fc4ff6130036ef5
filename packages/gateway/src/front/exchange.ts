import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { CheckItem, Decision, MatchedRule, RuleMatch, RuleRequest } from 'headgate'
import { clientAddress, type Field, problem, problemBody, rateLimitFields, refusalStatus } from 'headgate/http'
import { type Carried, Forwarding } from '../forward/forwarding.ts'
import type { LiveRoute } from '../forward/live-routes.ts'
import { RequestBody } from '../forward/request-body.ts'
import { corsFields, problemFields } from './answers.ts'
import type { Connection, OpenRequest } from './connection.ts'
import { type Flaw, flaw, flawOfHead, readTarget } from './flaws.ts'
import { pushForwarded } from './forwarded.ts'
import type { Front, RequestOutcome } from './front.ts'
import { hostName } from './host-name.ts'
import { holdsOn, isPatient, Permit } from './permit.ts'
import { OVERFLOW, RequestHead, valuesOf } from './request-head.ts'

const NOTHING: readonly Field[] = []

/** Instead of an upstream's status. */
const NO_ANSWER = 0

/**
 * The life of one request: it is read, the rules judge it, and it is refused or forwarded. Nothing is
 * charged for a request that is not valid; whatever is valid is judged before its body is read.
 */
export class Exchange implements RuleRequest, Carried, OpenRequest {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly method: string
  path = ''
  query = ''
  host = ''
  ip = ''
  route: string | undefined
  ours: readonly Field[] = NOTHING
  readonly #front: Front
  readonly #connection: Connection
  readonly #head: RequestHead
  /** The request expects what nobody here can do. */
  readonly #unexpected: boolean
  #authority = ''
  #way: LiveRoute | undefined
  #forwarding: Forwarding | undefined
  /** What it holds on to while it lives; most requests hold on to nothing. */
  #permit: Permit | undefined
  /** When the step began whose time is measured: the check, then the forwarding. */
  #sinceMs = 0
  #gone = false
  #counted = false

  constructor(front: Front, connection: Connection, req: IncomingMessage, res: ServerResponse, unexpected: boolean) {
    this.req = req
    this.res = res
    this.method = req.method as string
    this.#front = front
    this.#connection = connection
    this.#head = new RequestHead(req.rawHeaders, front.fields, connection.trusted)
    this.#unexpected = unexpected
  }

  get trusted(): boolean {
    return this.#connection.trusted
  }

  get closing(): boolean {
    return this.#front.draining
  }

  /** What the upstream is not shown cannot count: a caller could be somebody else for each request. */
  header(name: string): readonly string[] | undefined {
    return this.#head.hides(name) ? undefined : valuesOf(this.req.rawHeaders, name)
  }

  /** Judges the request, then answers it. */
  start(): void {
    this.res.on('close', () => this.#closed())
    try {
      if (this.#unexpected) this.#refuse(flaw(417, 'Only 100-continue can be expected.'))
      else this.#judge()
    } catch (error) {
      this.#broken(error)
    }
  }

  #judge(): void {
    const { file, routes } = this.#front.live
    const flawed = this.#read()
    if (flawed) {
      this.#refuse(flawed)
      return
    }
    const route = file.routeFor(this.path)
    if (route) {
      this.#way = routes.of(route)
      this.route = route.path
    }
    const match = file.match(this)
    if (match.outcome === 'check') this.#check(match.items, match.rules)
    else this.#listed(match)
  }

  #check(items: readonly CheckItem[], rules: readonly MatchedRule[]): void {
    if (items.length === 0) {
      this.#admit()
      return
    }
    this.#sinceMs = performance.now()
    if (isPatient(rules)) {
      this.#permitted(items, rules, (permit) => permit.decide())
      return
    }
    this.#front.engine.check(items).then(
      (decision) => {
        if (holdsOn(decision)) this.#permitted(items, rules, (permit) => permit.hold(decision))
        else this.#decided(decision, rules)
      },
      (error: unknown) => this.#broken(error),
    )
  }

  /** Decides what waits, or holds on to something as long as it lives. */
  #permitted(
    items: readonly CheckItem[],
    rules: readonly MatchedRule[],
    decide: (permit: Permit) => Promise<Decision>,
  ): void {
    const { engine, waiting } = this.#front
    const permit = new Permit(engine, waiting, items, rules)
    this.#permit = permit
    decide(permit).then(
      (decision) => this.#decided(decision, rules),
      (error: unknown) => {
        if (this.#gone) this.#count('error')
        else this.#broken(error)
      },
    )
    if (this.#gone) permit.close()
  }

  #listed(match: Exclude<RuleMatch, { outcome: 'check' }>): void {
    const { metrics } = this.#front
    if (match.outcome === 'allow') {
      metrics.listed(match.rule, 'allowed')
      this.#admit()
    } else if (match.outcome === 'deny') {
      metrics.listed(match.rule, 'denied')
      this.#answer('denied', 403, problem(403, 'This caller is on a list that is refused.'), NOTHING)
    } else {
      metrics.listed(match.rule, 'error')
      this.#refuse(flaw(400, `The request does not carry what it is counted by: ${match.dimension}.`))
    }
  }

  /** Reads what rules need to know. */
  #read(): Flaw | undefined {
    const flawed = flawOfHead(this.req, this.#head)
    if (flawed) return flawed
    const target = readTarget(this.req, this.#front.paths)
    if ('status' in target) return target
    this.path = target.path
    this.query = target.query
    return this.#readAddresses(target.authority ?? this.#head.host)
  }

  #readAddresses(authority: string | undefined): Flaw | undefined {
    const connection = this.#connection
    if (authority !== undefined) {
      if (authority !== connection.authority) {
        const host = hostName(authority)
        if (host === undefined) return flaw(400, 'The Host is not a host with an optional port.')
        connection.authority = authority
        connection.host = host
        connection.forwarded = ''
      }
      this.#authority = authority
      this.host = connection.host
    }
    this.ip = connection.trusted
      ? clientAddress(connection.peerText, (name) => valuesOf(this.req.rawHeaders, name), this.#front.trust).ip
      : connection.peer
    return undefined
  }

  #decided(decision: Decision, rules: readonly MatchedRule[]): void {
    try {
      this.#front.metrics.decision(decision, rules, this.#seconds())
      this.ours = rateLimitFields(decision, rules)
      // Let by although it waited in vain: the upstream is told by which rule.
      if (decision.allowed && decision.reason !== undefined) this.#head.fields.push(OVERFLOW, decision.rule ?? '')
      if (decision.allowed) this.#admit()
      else this.#limit(decision)
    } catch (error) {
      this.#broken(error)
    }
  }

  #limit(decision: Decision): void {
    const origin = this.header('origin')?.[0]
    const cors = corsFields(this.#front.corsOrigins, origin, this.ours)
    const fields = cors.length > 0 ? [...this.ours, ...cors] : this.ours
    this.#answer('limited', refusalStatus(decision), problemBody(decision), fields)
  }

  #admit(): void {
    const way = this.#way
    if (this.#gone) this.#count('allowed')
    else if (way) this.#forward(way)
    else this.#answer('error', 404, problem(404, 'No route leads from this path.'), this.ours)
  }

  #forward(way: LiveRoute): void {
    const head = this.#head
    const { fields } = head
    if (way.passHost && this.#authority !== '') fields.push('Host', this.#authority)
    pushForwarded(fields, head, this.#connection, this.#authority)
    if (head.contentLength !== undefined && !head.chunked) fields.push('Content-Length', head.contentLength)
    this.#sinceMs = performance.now()
    this.#forwarding = new Forwarding(this, way, {
      method: this.method,
      path: way.target(this.path, this.query),
      fields,
      body: head.hasBody ? this.#body(way) : undefined,
    })
    this.#forwarding.start()
  }

  #body(way: LiveRoute): RequestBody {
    const expects = this.req.headers.expect !== undefined && this.req.httpVersionMinor > 0
    return new RequestBody(this.req, way.timeoutMs, expects ? () => this.res.writeContinue() : undefined)
  }

  started(status: number): void {
    this.#permit?.settle(status)
    this.#front.metrics.upstream(this.route as string, status, this.#seconds())
    this.#count('allowed')
  }

  failed(status: 400 | 502 | 504, detail: string): void {
    if (status !== 400) this.#front.metrics.upstream(this.route as string, NO_ANSWER, this.#seconds())
    this.#answer('error', status, problem(status, detail), this.ours)
  }

  leaveUnread(): void {
    this.#connection.closeUnread()
  }

  abandon(): void {
    this.#gone = true
    this.#permit?.close()
    this.#forwarding?.abort()
  }

  stalled(): boolean {
    if (this.req.complete || this.res.headersSent) return false
    this.#forwarding?.abort()
    this.#answer('error', 408, problem(408, 'The body did not arrive in time.'), this.ours)
    return true
  }

  #refuse({ status, detail, fields }: Flaw): void {
    this.#answer('error', status, problem(status, detail), fields ?? NOTHING)
  }

  #answer(outcome: RequestOutcome, status: number, body: string, ours: readonly Field[]): void {
    this.#count(outcome)
    this.#permit?.settle(status)
    // What came together with the head is being parsed: with a body that is there, the connection stays.
    if (this.#head.hasBody && !this.req.complete) setImmediate(() => this.#send(status, body, ours))
    else this.#send(status, body, ours)
  }

  #send(status: number, body: string, ours: readonly Field[]): void {
    const { req, res } = this
    if (this.#gone) return
    const unread = (this.#head.hasBody && !req.complete) || this.#head.misframed
    if (unread) {
      this.leaveUnread()
      // So that node does not read the body away by itself when the answer is out.
      req.read(0)
    }
    try {
      // With its phrase: one of the upstream's that could not be sent would be left in the answer.
      res.writeHead(status, STATUS_CODES[status], problemFields(body, ours, unread || this.closing))
      res.end(body)
    } catch (error) {
      this.#front.log.error({ err: error }, 'an answer could not be written')
      res.destroy()
    }
  }

  #count(outcome: RequestOutcome): void {
    if (this.#counted) return
    this.#counted = true
    this.#front.metrics.request(outcome)
  }

  #seconds(): number {
    return (performance.now() - this.#sinceMs) / 1000
  }

  /** Something here is wrong, not the request. */
  #broken(error: unknown): void {
    this.#front.log.error({ err: error }, 'a request could not be judged')
    if (this.res.headersSent) this.res.destroy()
    else this.#answer('error', 500, problem(500, 'The gateway could not judge this request.'), NOTHING)
  }

  #closed(): void {
    this.#gone = true
    this.#permit?.close()
    if (this.#forwarding) {
      this.#count('allowed')
      this.#forwarding.abort()
    }
    this.#connection.answered()
  }
}
