-- What wrk sends: a GET with one key after the other, each of an account of its own, taken anew before it is used up.
-- Arguments: a file with a key on each line, how many requests there are for a key, how many were sent before, and
-- further header lines.

local requests, perKey, sent = {}, 1, 0

function init(args)
  perKey, sent = tonumber(args[2]), tonumber(args[3])
  for key in io.lines(args[1]) do
    requests[#requests + 1] = "GET " .. wrk.path .. " HTTP/1.1\r\nHost: " .. wrk.host
      .. "\r\nAuthorization: Bearer " .. key .. "\r\n" .. (args[4] or "") .. "\r\n"
  end
end

function request()
  local number = math.floor(sent / perKey)
  sent = sent + 1
  return requests[number % #requests + 1]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"replies":%d,"us":%d,"p50":%d,"p99":%d,"slowest":%d,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
