-- One page composed of a script of php-fpm, a response of the backend and another script. The
-- backend is requested over persistent connections, its response is parsed, and failures have
-- defined errors.
local HOST, PORT = "@HOST@", tonumber("@PORT@")

local function fetch(path)
  local socket = ngx.socket.tcp()
  socket:settimeouts(1000, 1000, 1000)
  local connected, problem = socket:connect(HOST, PORT, { pool_size = 100 })
  if not connected then
    return nil, problem
  end
  local request = "GET " .. path .. " HTTP/1.1\r\nHost: " .. HOST .. "\r\n\r\n"
  local sent
  sent, problem = socket:send(request)
  if not sent then
    return nil, problem
  end
  local line
  line, problem = socket:receive("*l")
  local status = line and tonumber(line:match("^HTTP/1%.1 (%d%d%d)"))
  if status ~= 200 then
    return nil, problem or "an unexpected status line"
  end
  local length
  repeat
    line, problem = socket:receive("*l")
    if not line then
      return nil, problem
    end
    length = length or tonumber(line:lower():match("^content%-length: *(%d+)"))
  until line == ""
  local body
  body, problem = socket:receive(length or 0)
  if not body then
    return nil, problem
  end
  socket:setkeepalive(30000, 100)
  return body
end

local function part(path)
  local answer = ngx.location.capture(path, { args = ngx.var.args })
  if answer.status ~= 200 then
    return ngx.exit(502)
  end
  return answer.body
end

local before = part("/before.php")
local body, problem = fetch("/@LATENCY@")
if not body then
  ngx.log(ngx.ERR, "the backend: ", problem)
  return ngx.exit(504)
end
ngx.print(before, body, part("/after.php"))
