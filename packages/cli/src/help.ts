// What --help shows below the options of each command.

const EXITS = `
Exit codes: 0 fine, 1 found something or refused, 2 usage, 3 a server is unreachable.`

export const PROGRAM_HELP = `
Examples:
  headgate up -c headgate.yaml
  headgate validate headgate.yaml
  headgate explain GET /api/orders -H 'x-user-id: 42'
  headgate peek orders --key user=42
  headgate reset orders/user --key user=42
${EXITS}
Each command has a help of its own: headgate explain --help`

export const UP_HELP = `
SIGHUP, or a change of the file, loads the rules again; a file with errors changes nothing.
SIGTERM and SIGINT let requests under way finish, then the process ends with 0.

Examples:
  headgate up                              with $HEADGATE_CONFIG, or ./headgate.yaml
  headgate up -c /etc/headgate.yaml
  headgate up --json                       each event as JSON on a line of its own
  kill -HUP PID                            load the rules again; PID is that of this process

Under a supervisor run node_modules/.bin/headgate up, not npx: a SIGTERM to npx does not reach it.
${EXITS}`

export const VALIDATE_HELP = `
Examples:
  headgate validate                        $HEADGATE_CONFIG, or ./headgate.yaml
  headgate validate rules/headgate.yaml
  headgate check --strict headgate.yaml    exit 1 for warnings too
  headgate validate --json | jq '.problems[].message'

Exit codes: 0 the file can be used, 1 it cannot, 2 usage, or there is no such file.`

export const EXPLAIN_HELP = `
With store: memory there is no state to look at: an unused budget is judged.

Examples:
  headgate explain GET /api/orders
  headgate explain POST '/api/login?next=/' -H 'x-user-id: 42' --ip 203.0.113.7
  headgate explain GET https://api.example.com/api/orders
  headgate explain GET /api/orders --json | jq .allowed

Exit codes: 0 it would pass, 1 it would be refused, 2 usage, 3 Redis is unreachable.`

const KEYS = `
Without a limit: those limits of the rule that the keys are for; without keys: those that all callers
share (by: global). A bare value will do where the rule counts by one dimension only. A caller
that is counted by address for want of a value: '~ip:203.0.113.7', as headgate explain shows it.
`

export const PEEK_HELP = `${KEYS}
Examples:
  headgate peek orders --key user=42
  headgate peek orders/user-daily 42
  headgate peek orders/user+route --key user=42 --key 'route=/api/*'
  headgate peek orders/global
  headgate peek orders --key user=42 --json | jq '.limits[].remaining'

Exit codes: 0 something is left, 1 a limit would refuse now, 2 usage, 3 Redis is unreachable.`

export const RESET_HELP = `${KEYS}
Examples:
  headgate reset orders --key user=42
  headgate reset orders/user 42
  headgate reset orders/global

Exit codes: 0 done, 2 usage, 3 Redis is unreachable.`
