<?php

namespace Swoole\Http;

use Outboard\Engine\Swoole as Engine;

class Request
{
    // The order of these is known to swoole/http.c; those after $fd are read when they are used.
    protected int $exchange = 0;

    public $fd = 0;

    public $header = null;

    public $server = null;

    public $cookie = null;

    public $get = null;

    public $files = null;

    public $post = null;

    public $tmpfiles = null;

    public $streamId = 0;

    public function __get(string $name): mixed
    {
        return match ($name) {
            'header' => $this->header = Engine\http_headers($this->exchange),
            'server' => $this->server = Engine\http_server($this->exchange),
            'get' => $this->get = Engine\parsed(Engine\http_query($this->exchange)),
            'cookie' => $this->cookie = Engine\Settings::$values['http_parse_cookie'] ?? true ? Engine\cookies($this->header['cookie'] ?? '') : null,
            'post', 'files', 'tmpfiles' => $this->form($name),
            default => null,
        };
    }

    public function __isset(string $name): bool
    {
        return $this->__get($name) !== null;
    }

    public function __debugInfo(): array
    {
        $this->materialise();
        return get_object_vars($this);
    }

    public function rawContent(): string|false
    {
        return Engine\http_body($this->exchange);
    }

    public function getContent(): string|false
    {
        return Engine\http_body($this->exchange);
    }

    public function getData(): string|false
    {
        $text = $this->getMethod() . ' ' . $this->server['request_uri'];
        $text .= isset($this->server['query_string']) ? '?' . $this->server['query_string'] : '';
        $text .= ' ' . $this->server['server_protocol'] . "\r\n";
        foreach ($this->header as $name => $value) {
            $text .= "$name: $value\r\n";
        }
        return "$text\r\n" . $this->rawContent();
    }

    public function getMethod(): string|false
    {
        return $this->server['request_method'] ?? false;
    }

    public function isCompleted(): bool
    {
        return true;
    }

    /** A request that parse() fills, for data of a socket. */
    public static function create(array $options = []): self
    {
        return new Engine\ParsedRequest($options);
    }

    public function parse(string $data): int|false
    {
        return false;
    }

    /** @internal reads everything, for a request that outlives its handler */
    public function materialise(): void
    {
        foreach (['header', 'server', 'get', 'cookie', 'post'] as $name) {
            $this->$name;
        }
        Engine\http_body($this->exchange);
    }

    private function form(string $wanted): mixed
    {
        $type = $this->header['content-type'] ?? '';
        $this->post = $this->files = $this->tmpfiles = null;
        $isParsed = Engine\Settings::$values[stripos($type, 'multipart/form-data') === 0 ? 'http_parse_files' : 'http_parse_post'] ?? true;
        if (!$isParsed) {
            return null;
        }
        if (stripos($type, 'application/x-www-form-urlencoded') === 0) {
            $this->post = Engine\parsed((string) $this->rawContent());
        } elseif (stripos($type, 'multipart/form-data') === 0) {
            [$this->post, $this->files, $this->tmpfiles] = Engine\parts($type, (string) $this->rawContent(), $this->exchange);
        }
        return $this->$wanted;
    }
}

class Response
{
    // As in Request.
    protected int $exchange = 0;

    public $fd = 0;

    public $socket = null;

    public $header = null;

    public $cookie = null;

    public $trailer = null;

    protected int $status = 200;

    protected string $reason = '';

    protected bool $hasHead = false;

    protected bool $hasType = false;

    public function initHeader(): bool
    {
        return $this->isWritable();
    }

    public function status(int $http_status_code, string $reason = ''): bool
    {
        if ($this->hasHead) {
            return false;
        }
        $this->status = $http_status_code;
        $this->reason = $reason;
        return true;
    }

    public function setStatusCode(int $http_status_code, string $reason = ''): bool
    {
        return $this->status($http_status_code, $reason);
    }

    public function header(string $key, string|array|int|float|bool|null $value, bool $format = true): bool
    {
        if ($this->hasHead || $key === '') {
            return false;
        }
        if ($format) {
            $key = ucwords(strtolower($key), '-');
        }
        if ($value === null) {
            unset($this->header[$key]);
            return true;
        }
        $this->hasType = $this->hasType || strcasecmp($key, 'Content-Type') === 0;
        $this->header[$key] = $value;
        return true;
    }

    public function setHeader(string $key, string|array|int|float|bool|null $value, bool $format = true): bool
    {
        return $this->header($key, $value, $format);
    }

    public function cookie(
        Cookie|string $name_or_object,
        ?string $value = '',
        int $expires = 0,
        string $path = '',
        string $domain = '',
        bool $secure = false,
        bool $httponly = false,
        string $samesite = '',
        string $priority = '',
        bool $partitioned = false,
    ): bool {
        if ($name_or_object instanceof Cookie) {
            $line = $this->hasHead ? false : $name_or_object->toString();
            $line === false || $this->cookie[] = $line;
            return $line !== false;
        }
        return $this->addCookie($name_or_object, urlencode((string) $value), $expires, $path, $domain, $secure, $httponly, $samesite, $priority, $partitioned);
    }

    public function setCookie(Cookie|string $name, ?string $value = '', int $expires = 0, string $path = '', string $domain = '', bool $secure = false, bool $httponly = false, string $samesite = '', string $priority = '', bool $partitioned = false): bool
    {
        return $this->cookie($name, $value, $expires, $path, $domain, $secure, $httponly, $samesite, $priority, $partitioned);
    }

    public function rawcookie(string $name, ?string $value = '', int $expires = 0, string $path = '', string $domain = '', bool $secure = false, bool $httponly = false, string $samesite = '', string $priority = '', bool $partitioned = false): bool
    {
        return $this->addCookie($name, (string) $value, $expires, $path, $domain, $secure, $httponly, $samesite, $priority, $partitioned);
    }

    public function setRawCookie(string $name, ?string $value = '', int $expires = 0, string $path = '', string $domain = '', bool $secure = false, bool $httponly = false, string $samesite = '', string $priority = '', bool $partitioned = false): bool
    {
        return $this->addCookie($name, (string) $value, $expires, $path, $domain, $secure, $httponly, $samesite, $priority, $partitioned);
    }

    private function addCookie(string $name, string $value, mixed ...$attributes): bool
    {
        $line = $this->hasHead ? false : Engine\cookie_line($name, $value, ...$attributes);
        if ($line === false) {
            return false;
        }
        $this->cookie[] = $line;
        return true;
    }

    public function trailer(string $key, string $value): bool
    {
        if ($key === '' || strpbrk($key . $value, "\r\n\0") !== false || !$this->isWritable()) {
            return false;
        }
        $this->trailer[$key] = $value;
        return true;
    }

    /** Lines for the end of the body. */
    protected function trailerLines(): array
    {
        $lines = [];
        foreach ($this->trailer ?? [] as $name => $value) {
            $lines[] = "$name: $value";
        }
        return $lines;
    }

    public function redirect(string $location, int $http_status_code = 302): bool
    {
        $this->header('Location', $location);
        $this->status($http_status_code);
        return $this->end();
    }

    public function write(string $content): bool
    {
        if ($content === '') {
            trigger_error('Swoole\Http\Response::write(): the data sent must not be empty', E_USER_WARNING);
            return false;
        }
        return ($this->hasHead || $this->sendHead()) && Engine\http_write($this->exchange, $content);
    }

    public function end(?string $content = null): bool
    {
        $content ??= '';
        return ($this->hasHead || $this->sendHead(strlen($content))) && ($this->trailer === null
            ? Engine\http_end($this->exchange, $content)
            : Engine\http_end($this->exchange, $content, $this->trailerLines()));
    }

    public function sendfile(string $filename, int $offset = 0, int $length = 0): bool
    {
        // filesize() would be that of an earlier request.
        $file = is_file($filename) ? @fopen($filename, 'rb') : false;
        $size = $file === false ? 0 : (int) fstat($file)['size'];
        if ($file === false || $offset < 0 || $offset + $length > $size) {
            trigger_error("Swoole\\Http\\Response::sendfile(): $filename cannot be sent from $offset on", E_USER_WARNING);
            return false;
        }
        if (!$this->hasType) {
            $this->header('Content-Type', Engine\type_of($filename));
        }
        $left = $length > 0 ? $length : $size - $offset;
        $this->header('Content-Length', $left);
        fseek($file, $offset);
        while ($left > 65536) {
            $piece = (string) fread($file, 65536);
            if ($piece === '' || !$this->write($piece)) {
                return false;
            }
            $left -= strlen($piece);
        }
        return $this->end($left > 0 ? (string) fread($file, $left) : '');
    }

    public function isWritable(): bool
    {
        return Engine\http_is_writable($this->exchange);
    }

    public function detach(): bool
    {
        return Engine\http_detach($this->exchange);
    }

    public static function create(object|array|int $server = -1, int $fd = -1): self|false
    {
        if ($server instanceof \Swoole\Coroutine\Socket) {
            $request = Request::create();
            $request->server = ['request_method' => 'GET', 'server_protocol' => 'HTTP/1.1'];
            return Engine\SocketResponse::to($server, $request, [], true);
        }
        return Engine\http_attach($fd >= 0 ? $fd : (is_int($server) ? $server : -1)) ?? false;
    }

    public function close(): bool
    {
        return $this->end();
    }

    public function upgrade(): bool
    {
        return Engine\warn('Swoole\Http\Response::upgrade(): a server of WebSockets is not there yet; Swoole\Coroutine\Http\Server has them');
    }

    public function push(mixed $data, int $opcode = 1, int $flags = 1): bool
    {
        return false;
    }

    public function recv(float $timeout = 0): mixed
    {
        return false;
    }

    public function ping(string $data = ''): bool
    {
        return false;
    }

    public function disconnect(int $code = SWOOLE_WEBSOCKET_CLOSE_NORMAL, string $reason = ''): bool
    {
        return false;
    }

    public function goaway(int $error_code = 0, string $debug_data = ''): bool
    {
        return false;
    }

    /** With the length of the whole body, if it is known. */
    protected function sendHead(int $length = -1): bool
    {
        return $this->hasHead = Engine\http_head($this->exchange, $this->status, $this->reason, $this->lines(), $length);
    }

    /** @return list<string> the lines of the head */
    protected function lines(): array
    {
        $lines = $this->hasType ? [] : ['Content-Type: text/html'];
        foreach ($this->header ?? [] as $name => $value) {
            if (is_array($value)) {
                foreach ($value as $one) {
                    $lines[] = "$name: $one";
                }
            } else {
                $lines[] = $value === true ? "$name: 1" : "$name: $value";
            }
        }
        foreach ($this->cookie ?? [] as $line) {
            $lines[] = "Set-Cookie: $line";
        }
        return $lines;
    }
}

namespace Outboard\Engine\Swoole;

/** Null of nothing, as the extension has it. */
function parsed(?string $query): ?array
{
    if ($query === null || $query === '') {
        return null;
    }
    parse_str($query, $values);
    return $values === [] ? null : $values;
}

/** The value of a header Set-Cookie (RFC 6265, 4.1); false: a part of it is invalid. */
function cookie_line(string $name, string $value, int $expires, string $path, string $domain, bool $secure, bool $httponly, string $samesite, string $priority, bool $partitioned): string|false
{
    if ($name === '' || strpbrk($name, "=,; \t\r\n\013\014") !== false || strpbrk($value . $path . $domain . $samesite . $priority, ",; \t\r\n\013\014") !== false) {
        return false;
    }
    $line = $value === '' ? "$name=deleted; expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0" : "$name=$value";
    if ($value !== '' && $expires > 0) {
        $line .= '; expires=' . gmdate('D, d-M-Y H:i:s', $expires) . ' GMT; Max-Age=' . max(0, $expires - time());
    }
    $line .= ($path === '' ? '' : "; path=$path") . ($domain === '' ? '' : "; domain=$domain");
    $line .= ($secure ? '; secure' : '') . ($httponly ? '; HttpOnly' : '') . ($samesite === '' ? '' : "; SameSite=$samesite");
    return $line . ($priority === '' ? '' : "; Priority=$priority") . ($partitioned ? '; Partitioned' : '');
}

/** By PHP's rules (php_variables.c), as Swoole has them since 6.2. */
function cookies(string $header): ?array
{
    $pairs = $taken = [];
    foreach (explode(';', $header) as $pair) {
        [$name, $value] = explode('=', ltrim($pair), 2) + [1 => ''];
        $pair = rawurlencode($name) . '=' . rawurlencode(rawurldecode($value));
        @parse_str($pair, $one);
        $key = array_key_first($one);
        // The first of equal names stays; elements are added to arrays.
        if ($key !== null && (is_array($one[$key]) || !isset($taken[$key]))) {
            $taken[$key] = true;
            $pairs[] = $pair;
        }
    }
    @parse_str(implode('&', $pairs), $cookies);
    return $cookies === [] ? null : $cookies;
}

/** A multipart body (RFC 7578): [fields, files, paths of temporary files]. */
function parts(string $type, string $body, int $exchange): array
{
    if (!preg_match('/boundary=(?:"([^"]+)"|([^\s;,]+))/i', $type, $found)) {
        return [null, null, null];
    }
    $boundary = '--' . ($found[1] !== '' ? $found[1] : $found[2]);
    $query = '';
    $files = $paths = [];
    foreach (array_slice(explode("\r\n$boundary", "\r\n$body"), 1) as $part) {
        if (str_starts_with($part, '--')) {
            break;
        }
        [$head, $content] = explode("\r\n\r\n", $part, 2) + [1 => null];
        if ($content === null || !preg_match('/^content-disposition:[^\r\n]*;\s*name="([^"]*)"/im', $head, $name)) {
            continue;
        }
        if (!preg_match('/^content-disposition:[^\r\n]*;\s*filename="([^"]*)"/im', $head, $file)) {
            $query .= '&' . urlencode($name[1]) . '=' . urlencode($content);
            continue;
        }
        $is_typed = preg_match('/^content-type:\s*([^\r\n]+)/im', $head, $content_type);
        $uploaded = uploaded(basename($file[1]), $is_typed ? trim($content_type[1]) : '', $content, $exchange);
        if ($uploaded['tmp_name'] !== '') {
            $paths[] = $uploaded['tmp_name'];
        }
        place($files, $name[1], $uploaded);
    }
    return [parsed(substr($query, 1)), $files === [] ? null : $files, $paths === [] ? null : $paths];
}

/** "a[b][]" puts the file where PHP's own parser would put a field of that name. */
function place(array &$files, string $name, array $uploaded): void
{
    if (!preg_match('/^([^\[]+)((?:\[[^\]]*\])+)$/', $name, $found)) {
        $files[$name] = $uploaded;
        return;
    }
    $at = &$files[$found[1]];
    foreach (explode('][', substr($found[2], 1, -1)) as $key) {
        if ($key === '') {
            $at = &$at[];
        } else {
            $at = &$at[$key];
        }
    }
    $at = $uploaded;
}

function uploaded(string $name, string $type, string $content, int $exchange): array
{
    $limit = (int) (Settings::$values['upload_max_filesize'] ?? 0);
    if ($limit > 0 && strlen($content) > $limit) {
        return ['name' => $name, 'type' => $type, 'tmp_name' => '', 'error' => UPLOAD_ERR_INI_SIZE, 'size' => 0];
    }
    $error = $name === '' ? UPLOAD_ERR_NO_FILE : UPLOAD_ERR_OK;
    $path = $name === '' ? false : tempnam(Settings::$values['upload_tmp_dir'] ?? (ini_get('upload_tmp_dir') ?: sys_get_temp_dir()), 'swoole.upfile.');
    if ($path !== false && file_put_contents($path, $content) === strlen($content)) {
        // Another one's file is removed with its request.
        $exchange < 0 || http_upload($exchange, $path);
    } elseif ($name !== '') {
        $error = UPLOAD_ERR_CANT_WRITE;
    }
    return ['name' => $name, 'type' => $type, 'tmp_name' => (string) $path, 'error' => $error, 'size' => strlen($content)];
}

const TYPES = [
    'html' => 'text/html', 'htm' => 'text/html', 'css' => 'text/css', 'js' => 'text/javascript', 'json' => 'application/json',
    'txt' => 'text/plain', 'xml' => 'text/xml', 'png' => 'image/png', 'jpg' => 'image/jpeg', 'jpeg' => 'image/jpeg',
    'gif' => 'image/gif', 'svg' => 'image/svg+xml', 'webp' => 'image/webp', 'ico' => 'image/x-icon', 'pdf' => 'application/pdf',
    'zip' => 'application/zip', 'mp4' => 'video/mp4', 'mp3' => 'audio/mpeg', 'wasm' => 'application/wasm',
];

function type_of(string $path): string
{
    return Settings::$types[strtolower(pathinfo($path, PATHINFO_EXTENSION))] ?? 'application/octet-stream';
}

/** @internal of the server that this process belongs to */
final class Settings
{
    public static array $values = [];

    public static string $title = '';

    /** @var array<string, string> media types by suffix */
    public static array $types = TYPES;

    /** @var array<string, mixed> of swoole_library_set_option() */
    public static array $library = [];
}
