<?php

/**
 * Functions and classes of Outboard's PHP host, for editors and static analysers; never loaded by PHP.
 *
 * @generate-function-entries
 */

namespace Outboard {

    /** The version of the server, e.g. "0.1.0". */
    const VERSION = UNKNOWN;

    /**
     * Handles requests until the worker is to stop; the handler's result is the response.
     *
     * The handler gets the request, and returns a Response, a string (the body of a 200), an array or
     * JsonSerializable (a JSON body), or nothing if it used echo and header(). Code after serve() runs when
     * the worker stops.
     *
     * @param callable(Request): mixed $handler
     */
    function serve(callable $handler): void {}

    /**
     * Waits for a request, calls the handler, which uses the superglobals, echo and header(), and returns
     * true after the response was sent; false when the worker is to stop. With a concurrency above one it
     * handles requests until then, each in a coroutine. Same as frankenphp_handle_request().
     */
    function handle_request(callable $handler): bool {}

    /**
     * Code before this call runs once, code after it once per request, with the request's superglobals: with
     * isolation "rewind" each time from the same memory. In classic mode the
     * script is booted once as well, for requests that agree with what it has read of one before the call.
     * Elsewhere it does nothing, so a front controller may call it in every mode.
     *
     * @param array<int|string, string|list<string>> $ignored_reads what the code below reads again: names such as
     *        `_COOKIE.lang` or `_GET`; pairs of a name and a path, for reads by files whose path begins so; or of a name
     *        and a list of a path and files, for such reads if the nearest caller outside of the reader's directory is one
     *        of these files
     * @param int $max_age after so many seconds it boots again; 0, or more than `pool.snapshot_max_age`: after that
     * @param ?string $refused_because there is no snapshot, and this is logged
     */
    function snapshot(array $ignored_reads = [], int $max_age = 0, ?string $refused_because = null): void {}

    /**
     * Whether this is the start of a script that becomes a snapshot: then what many requests need can be made above
     * snapshot(), once. False in requests, and in a script that handles one.
     */
    function is_booting(): bool {}

    /**
     * In the boot of a script with isolation "rewind": names other data that it reads, so that
     * snapshot_retire() with one of the keys has it boot again. Files are noticed without it. Elsewhere it does
     * nothing.
     *
     * @throws \ValueError if a key is empty or longer than 200 bytes
     * @throws \RuntimeException beyond 256 keys
     */
    function snapshot_depends(string ...$keys): void {}

    /**
     * Retires the app's snapshots that depend on the key, or all: requests that begin after this call are
     * served by a boot that begins after it. Returns the number of retired snapshots; 0 in an app without.
     *
     * @throws \ValueError if the key is empty or longer than 200 bytes
     * @throws \RuntimeException in a boot, which has no gateway
     */
    function snapshot_retire(?string $key = null): int {}

    /**
     * Calls a function at the beginning of each request of a snapshot, with its superglobals, before the code below
     * the snapshot. For what must not be shared by requests, such as a connection of a client that does not
     * reconnect. If it throws, the request fails. Elsewhere it does nothing.
     */
    function on_resume(callable $callback): void {}

    /** Whether this process runs a worker script. */
    function is_worker(): bool {}

    /**
     * Sends an HTTP request through the gateway and waits for the response; other coroutines continue.
     *
     * Options: method, headers (name => value or list of values), query (array), body (string),
     * json (anything), form (array), timeout and connect_timeout (seconds), redirects (maximum, 5),
     * retries (of idempotent calls, 1), max_body_bytes (16 MiB), verify (true), decompress (true),
     * http2 (true).
     *
     * @param array<string, mixed> $options
     * @throws FetchException if there is no complete response; any status is a response
     */
    function fetch(string $url, array $options = []): FetchResponse {}

    /** Runs the task in a coroutine of the current request, which starts when this one waits. */
    function spawn(callable $task, mixed ...$arguments): Coroutine {}

    /** Waits for coroutines; returns the result of one, or a list of results. Throws their first exception. */
    function await(Coroutine $coroutine, Coroutine ...$more): mixed {}

    /**
     * Runs all tasks concurrently, and returns their results under the same keys. The first exception is
     * thrown after all of them have ended.
     *
     * @template TKey of array-key
     * @template T
     * @param array<TKey, callable(): T> $tasks
     * @return array<TKey, T>
     */
    function concurrently(array $tasks, int $limit = 0): array {}

    /**
     * A span of the request's trace, in every mode: it lasts as long as the function runs, and fails with its
     * exception. Without a function it has no duration. It is exported if the request is (`[tracing]`).
     *
     * @param callable|null $body called without arguments
     * @param array<string, string|int|float|bool> $attributes at most 32
     * @return mixed what the function returns
     */
    function span(string $name, ?callable $body = null, array $attributes = []): mixed {}

    /**
     * Purges pages from the app's page cache, in every mode. After it returns none of them is served, and
     * those that are being rendered are not stored.
     *
     * @param list<string>|string $urls URLs, or paths with their query for every host
     * @param list<string>|string $tags values that pages sent in Cache-Tag, Surrogate-Key or xkey
     * @param list<string>|string $prefixes prefixes of URLs or paths
     * @param bool $soft serve the old pages for up to a minute while new ones are rendered
     * @return int the number of pages
     */
    function cache_purge(
        array|string $urls = [],
        array|string $tags = [],
        array|string $prefixes = [],
        bool $all = false,
        bool $soft = false,
    ): int {}

    /** Waits; other coroutines continue. */
    function sleep(float $seconds): void {}

    /** Calls once, after this time, in its own coroutine, if the worker still runs. */
    function after(float $seconds, callable $callback): Timer {}

    /** Calls repeatedly, at this interval, until cancelled or until the worker exits. */
    function every(float $seconds, callable $callback): Timer {}

    /** Runs the callback after the response of the current request was sent. */
    function defer(callable $callback): void {}

    /**
     * Queues a task for the app's task workers, and returns its id once the gateway has accepted it. It runs
     * at least once, even if workers crash, until it succeeds or its retries are used up. The data must be
     * serializable, up to 16 MiB. In every mode.
     *
     * @param float $delay seconds until the first attempt
     * @param int|null $retries further attempts after a failure; null: as configured
     * @throws TaskException if it is not accepted
     */
    function dispatch(string $name, mixed $data = null, float $delay = 0, ?int $retries = null): string {}

    /**
     * Like dispatch(), and waits for the result of the task's handler; other coroutines continue. Only in
     * worker mode.
     *
     * @throws TaskException if it is not accepted, or every attempt fails
     */
    function task(string $name, mixed $data = null, ?int $retries = null): mixed {}

    /**
     * Registers the handler of tasks with this name. Any worker may call this, so that one script can serve
     * both pools; handlers are called only in task workers.
     *
     * @param callable(mixed, Task): mixed $handler gets the data; an exception is a failed attempt
     */
    function on_task(string $name, callable $handler): void {}

    /** Whether this process is a task worker: serve() and handle_request() run tasks in it. */
    function is_task_worker(): bool {}

    /** Handles requests and tasks with an object until the worker is to stop. */
    function run(HttpWorker $worker): void {}

    /** Writes a line to the error log, with the request's id. Levels are those of syslog(). */
    function log(string $message, int $level = LOG_INFO, array $context = []): void {}

    /** The current request, or null outside of one. */
    function request(): ?Request {}

    /** A request. Every part is read from the gateway's frame when it is first used. */
    final class Request
    {
        /** @internal created by the server for the current request */
        public function __construct() {}
        /** The method, as it was sent: `GET`. */
        public function method(): string {}
        /** The path, without the query, not decoded. */
        public function path(): string {}
        /** The request target as it was sent: path and query. */
        public function target(): string {}
        /** The whole URL. */
        public function url(): string {}
        /** "1.0", "1.1", "2.0" or "3.0". */
        public function protocol(): string {}
        /** "http" or "https": that of the client, also behind a trusted proxy. */
        public function scheme(): string {}
        /** The value of the header Host, or else the name of the server. */
        public function host(): string {}
        /** The client's address. */
        public function client(): string {}
        /** The id that logs show. */
        public function id(): string {}
        /** The value of a header, its lines joined by commas; null when it was not sent. */
        public function header(string $name): ?string {}
        /** @return array<string, list<string>> by lower-case name */
        public function headers(): array {}
        /**
         * All of the query, or one value of it.
         *
         * @return ($name is null ? array<array-key, mixed> : mixed)
         */
        public function query(?string $name = null, mixed $default = null): mixed {}
        /** The value of a cookie, or the default if there is none. */
        public function cookie(string $name, ?string $default = null): ?string {}
        /** @return array<string, string> */
        public function cookies(): array {}
        /**
         * Fields of a form (application/x-www-form-urlencoded or multipart/form-data).
         *
         * @return ($name is null ? array<array-key, mixed> : mixed)
         */
        public function form(?string $name = null, mixed $default = null): mixed {}
        /** Uploaded files as in $_FILES. */
        public function files(): array {}
        /** The whole body. */
        public function body(): string {}
        /**
         * The body as a stream.
         *
         * @return resource
         */
        public function stream() {}
        /**
         * The body, decoded.
         *
         * @throws \JsonException
         */
        public function json(): mixed {}
        /**
         * $_SERVER of this request.
         *
         * @return array<string, string|int|float>
         */
        public function server(): array {}
    }

    /** A response. Immutable: with…() returns another one. */
    final class Response
    {
        /**
         * @param string|iterable<string>|\Closure(): (iterable<string>|void)|resource $body sent at
         *        once, or piece by piece as it is produced
         * @param array<string, string|list<string>> $headers
         */
        public function __construct(
            public readonly mixed $body = '',
            public readonly int $status = 200,
            public readonly array $headers = [],
        ) {}
        /** The value as JSON, with its content type. Throws \JsonException if it cannot be encoded. */
        public static function json(mixed $value, int $status = 200, array $headers = []): self {}
        /** A page of HTML in UTF-8. */
        public static function html(string $body, int $status = 200, array $headers = []): self {}
        /** Plain text in UTF-8. */
        public static function text(string $body, int $status = 200, array $headers = []): self {}
        /** A redirect to another URL, without a body. */
        public static function redirect(string $location, int $status = 302): self {}
        /** A file; the gateway sends it. */
        public static function file(string $path, array $headers = []): self {}
        /** Server-sent events: strings, or arrays with data, event, id, retry. */
        public static function events(iterable $events, array $headers = []): self {}
        /** The same response with another body. */
        public function withBody(mixed $body): self {}
        /** The same response with another status. */
        public function withStatus(int $status): self {}
        /** The same response with this value of the header instead of any other. */
        public function withHeader(string $name, string $value): self {}
        /** The same response with one more line of the header. */
        public function withAddedHeader(string $name, string $value): self {}
        /** The same response with one more cookie. Options are those of setcookie(); by default it has the path /, HttpOnly and SameSite=Lax. */
        public function withCookie(string $name, string $value, array $options = []): self {}
    }

    /** The response of a fetch. */
    final class FetchResponse
    {
        private function __construct() {}
        /** The status, of the last response if there were redirects. */
        public readonly int $status;
        /** The URL of the response, after redirects. */
        public readonly string $url;
        /** The version of HTTP of the response. */
        public readonly string $protocol;
        /** The whole body, decompressed. */
        public readonly string $body;
        /** @var array<string, list<string>> by lower-case name */
        public readonly array $headers;
        /** The value of a header, its lines joined by commas; null when it was not sent. */
        public function header(string $name): ?string {}
        /** @throws \JsonException */
        public function json(): mixed {}
        /** Whether the status is below 400. */
        public function ok(): bool {}
    }

    /** There is no complete response to a fetch. */
    class FetchException extends \RuntimeException
    {
        /** bad_call, resolve, connect, tls, timeout, protocol, redirects, too_large, busy */
        public readonly string $reason;
        /** The URL of the request that failed. */
        public readonly string $url;
    }

    /** The attempt of a task that a handler is called for. */
    final class Task
    {
        private function __construct() {}
        /** The name of the task. */
        public readonly string $name;
        /** The id that dispatch() returned. */
        public readonly string $id;
        /** From 1. */
        public readonly int $attempt;
    }

    /** A task was not accepted, or has failed. */
    class TaskException extends \RuntimeException
    {
        /** busy: the queue is full, or there are no task workers; task: every attempt failed; too_large */
        public readonly string $reason;
        /** Its name. */
        public readonly string $task;
    }

    /** A worker as an object. */
    interface HttpWorker
    {
        /** Once per worker, before the first request or task. */
        public function onStart(): void;
        /** Returns a result for serve(); the given response is empty. */
        public function onRequest(Request $request, Response $response): mixed;
        /** Runs a task in a task worker, and returns the task's result. */
        public function onTask(string $name, mixed $data): mixed;
        /** Receives a result in the worker that queued the task (the package's Worker::dispatch()). */
        public function onFinish(string $name, mixed $result): void;
        /** Once per worker, when it is to stop. */
        public function onStop(): void;
    }

    /**
     * Records under names, shared by all workers: the gateway's entity store. During a call other coroutines
     * continue; in classic mode the worker waits.
     *
     * @throws KVException from every call, if the store fails
     */
    final class KV
    {
        /** A namespace of the configuration. */
        public function __construct(string $namespace = 'default') {}
        /** The value of a record; null if there is none. */
        public function get(string $id): ?string {}
        /**
         * Several records in one operation.
         *
         * @param array<string> $ids
         * @return array<string, string> the existing ones
         */
        public function getMany(array $ids): array {}
        /** The ttl is in seconds; null: unlimited. */
        public function put(string $id, string $value, ?float $ttl = null): void {}
        /** @param array<string, string> $values */
        public function putMany(array $values, ?float $ttl = null): void {}
        /** Puts the value only if there is none; returns whether it did. */
        public function add(string $id, string $value, ?float $ttl = null): bool {}
        /** Deletes records. Missing ones are not an error. */
        public function delete(string ...$ids): void {}
        /** Returns the new number; a missing record counts as 0 and gets the ttl. */
        public function increment(string $id, int $by = 1, ?float $ttl = null): int {}
        /** Replaces the value if it is the expected one; null means no record, on both sides. */
        public function compareAndSet(string $id, ?string $expected, ?string $value, ?float $ttl = null): bool {}
        /**
         * Records from `start` until before `end`, in order, read in pieces.
         *
         * @return \Generator<string, string>
         */
        public function scan(string $start = '', ?string $end = null): \Generator {}
        /** Acquires a lock until its lease ends; null if another owner holds it for longer than `wait` seconds. */
        public function lock(string $name, float $lease = 30.0, float $wait = 0.0): ?Lock {}
    }

    /** A lock of KV::lock(). */
    final class Lock
    {
        private function __construct() {}
        /** Extends the lease if the lock is still held; returns whether it is. */
        public function renew(float $lease = 30.0): bool {}
        /** Returns whether it was still held. */
        public function release(): bool {}
    }

    /** An error of the entity store. */
    class KVException extends \RuntimeException
    {
        /** bad_call, no_namespace, forbidden, not_a_number, too_large, overloaded, unreachable, full, failed. */
        public readonly string $reason;
    }

    /**
     * A rate limit of the configuration, `[app.NAME.rate_limits.LIMIT]`, by keys of the application: the
     * gateway's token buckets, shared by all workers, and by several gateways if it is configured. During a call
     * other coroutines continue; in classic mode the worker waits.
     *
     * @throws \ValueError from every call, if there is no such limit, the key is empty or longer than 1,024
     *     bytes, or a full bucket has fewer tokens
     */
    final class RateLimit
    {
        /** A limit of the configuration. */
        public function __construct(string $name) {}
        /** Takes tokens of the key's bucket, or none if there are fewer. */
        public function take(string|int $key, int $tokens = 1): RateLimitResult {}
        /** What take() would return, as far as this gateway knows; takes none. */
        public function look(string|int $key, int $tokens = 1): RateLimitResult {}
    }

    /** What a rate limit has decided. */
    final class RateLimitResult
    {
        /** Whether there were enough tokens. */
        public readonly bool $allowed;
        /** Tokens that are left. */
        public readonly int $remaining;
        /** Seconds until there are enough: for `Retry-After`. 0 if there are. */
        public readonly float $retryAfter;
        /** Tokens of a full bucket. */
        public readonly int $limit;
    }

    /** A running task. */
    final class Coroutine
    {
        private function __construct() {}
        /** Waits for the end; returns the result or throws the task's exception. */
        public function await(): mixed {}
        /** Whether the task has ended. */
        public function isDone(): bool {}
        /** Ends the task at its current wait. */
        public function cancel(): void {}
    }

    /** A timer of after() or every(). */
    final class Timer
    {
        private function __construct() {}
        /** Cancels the timer: the callback is not called again. */
        public function cancel(): void {}
    }

    /** A connection is in use by another coroutine. */
    final class ConnectionInUse extends \LogicException {}

    /** The request's deadline has passed, or the coroutine was cancelled. */
    final class Cancelled extends \Error {}
}

namespace {

    /** Sends the response; the script continues, and occupies its worker until it ends. */
    function outboard_finish_request(): bool {}

    /** @alias outboard_finish_request */
    function fastcgi_finish_request(): bool {}

    /** @alias Outboard\handle_request */
    function frankenphp_handle_request(callable $callback): bool {}

    /** @alias outboard_finish_request */
    function frankenphp_finish_request(): bool {}

    /** @alias apache_request_headers */
    function frankenphp_request_headers(): array {}

    /** @alias apache_response_headers */
    function frankenphp_response_headers(): array|bool {}

    /**
     * Sends the headers that are set. With a status of 1xx they are sent at once as an interim response (103
     * Early Hints), and again with the final one.
     */
    function headers_send(int $status = 200): int {}

    /** Writes a line to the error log. Levels are those of slog in Go (-4, 0, 4, 8); the context is ignored. */
    function frankenphp_log(string $message, int $level = 0, array $context = []): void {}

    /** The headers of the request, by name. */
    function apache_request_headers(): array {}

    /** @alias apache_request_headers */
    function getallheaders(): array {}

    /** The headers of the response that are set so far, by name. */
    function apache_response_headers(): array {}
}
