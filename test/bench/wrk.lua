-- What wrk sends: one request with one key after the other, each of an account of its own, taken anew before it is
-- used up. Arguments: a file with a key on each line, how many requests there are for a key, how many were sent before,
-- further header lines, and the body of a POST, if any.

local requests, perKey, sent = {}, 1, 0

function init(args)
  perKey, sent = tonumber(args[2]), tonumber(args[3])
  local body = args[5] or ""
  local method, length = "GET", ""
  if body ~= "" then
    method, length = "POST", "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n"
  end
  for key in io.lines(args[1]) do
    requests[#requests + 1] = method .. " " .. wrk.path .. " HTTP/1.1\r\nHost: " .. wrk.host
      .. "\r\nAuthorization: Bearer " .. key .. "\r\n" .. length .. (args[4] or "") .. "\r\n" .. body
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
