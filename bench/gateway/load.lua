-- What wrk sends: a GET of one of 10,000 users, chosen at random; what it reports: one line of JSON.
local requests = {}

function init(args)
  math.randomseed(os.time())
  for user = 1, 10000 do
    requests[user] = wrk.format("GET", nil, { ["x-user-id"] = string.format("user-%08d", user) })
  end
end

function request()
  return requests[math.random(#requests)]
end

function done(summary, latency)
  local errors = summary.errors
  local wrong = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  print(string.format('JSON {"requests":%d,"elapsedMs":%.3f,"wrong":%d,"p50Ms":%.3f,"p99Ms":%.3f}',
    summary.requests, summary.duration / 1000, wrong, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
