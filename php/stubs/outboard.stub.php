<?php

/**
 * What Outboard's PHP host adds to PHP. For editors and static analysers; never loaded by PHP.
 *
 * @generate-function-entries
 */

namespace Outboard {

    /** The version of the server, e.g. "0.1.0". */
    const VERSION = UNKNOWN;

    /**
     * Answers requests until the worker is to leave, each with what the handler returns.
     *
     * The handler gets the request; it may return a Response, a string (the body of a 200), an
     * array or JsonSerializable (a JSON body), or nothing after it has written by echo and header().
     * Code after serve() runs when the worker leaves.
     *
     * @param callable(Request): mixed $handler
     */
    function serve(callable $handler): void {}

    /**
     * Waits for a request, has the handler answer it from the superglobals with echo and header(),
     * and returns true after the answer has left; false when the worker is to leave. With a
     * concurrency above one it answers requests until then, each in a coroutine.
     * As frankenphp_handle_request().
     */
    function handle_request(callable $handler): bool {}

    /**
     * With isolation "fork": everything above this call is done once, everything below it once
     * for each request, in a process of its own with the request's superglobals. Does nothing
     * otherwise, so a front controller may hold it in any mode.
     */
    function snapshot(): void {}

    /** Whether this process is a worker whose script stays resident. */
    function is_worker(): bool {}

    /** Has the gateway make an HTTP request, and waits for its answer; other coroutines go on.
     *
     * Options: method, headers (name => value or list of values), query (array), body (string),
     * json (anything), form (array), timeout and connect_timeout (seconds), redirects (most, 5),
     * retries (of idempotent calls, 1), max_body_bytes (16 MiB), verify (true), decompress (true),
     * http2 (true).
     *
     * @param array<string, mixed> $options
     * @throws FetchException when there is no whole answer; any status is an answer
     */
    function fetch(string $url, array $options = []): FetchResponse {}

    /** Runs the task in a coroutine of the present request, beginning when this one waits. */
    function spawn(callable $task, mixed ...$arguments): Coroutine {}

    /** Waits for coroutines; one gives its result, several a list of results. Throws what they threw. */
    function await(Coroutine $coroutine, Coroutine ...$more): mixed {}

    /**
     * Runs all tasks at the same time, and gives their results under the same keys. The first
     * exception is thrown once all of them have ended.
     *
     * @template TKey of array-key
     * @template T
     * @param array<TKey, callable(): T> $tasks
     * @return array<TKey, T>
     */
    function concurrently(array $tasks, int $limit = 0): array {}

    /**
     * Throws pages out of the app's page cache, in any mode. When it returns none of them is served
     * any more, and those that are being made at the moment are not kept.
     *
     * @param list<string>|string $urls URLs, or paths with their query for every host
     * @param list<string>|string $tags what pages said in Cache-Tag, Surrogate-Key or xkey
     * @param list<string>|string $prefixes all URLs, or all paths, that begin so
     * @param bool $soft old pages are used for a minute while new ones are made
     * @return int how many pages
     */
    function cache_purge(
        array|string $urls = [],
        array|string $tags = [],
        array|string $prefixes = [],
        bool $all = false,
        bool $soft = false,
    ): int {}

    /** Waits; other coroutines go on. */
    function sleep(float $seconds): void {}

    /** Calls once, after so many seconds, in a coroutine of its own, while the worker lives. */
    function after(float $seconds, callable $callback): Timer {}

    /** Calls again and again, so many seconds apart, until cancelled, while the worker lives. */
    function every(float $seconds, callable $callback): Timer {}

    /** Runs the callback once the answer of the present request has left. */
    function defer(callable $callback): void {}

    /**
     * Queues a task for the app's task workers, and gives its id once the gateway has it. It is tried
     * until it succeeds, or the retries are used up: at least once, whatever becomes of workers.
     * Data are anything that serialize() takes, up to 16 MiB. In any mode.
     *
     * @param float $delay seconds until it is tried
     * @param int|null $retries further attempts after one that failed; null: as configured
     * @throws TaskException when it is not taken
     */
    function dispatch(string $name, mixed $data = null, float $delay = 0, ?int $retries = null): string {}

    /**
     * As dispatch(), and waits for what the task's handler returns; other coroutines go on. In worker
     * mode alone.
     *
     * @throws TaskException when it is not taken, or every attempt fails
     */
    function task(string $name, mixed $data = null, ?int $retries = null): mixed {}

    /**
     * Says who handles tasks of a name. Every worker may, so that one script is both: handlers are
     * called in task workers alone.
     *
     * @param callable(mixed, Task): mixed $handler gets the data; an exception is a failed attempt
     */
    function on_task(string $name, callable $handler): void {}

    /** Whether this process is a task worker: serve() and handle_request() do tasks in it. */
    function is_task_worker(): bool {}

    /** Has an object answer until the worker is to leave. */
    function run(HttpWorker $worker): void {}

    /** Writes a line to the error log, with the request's id. Levels are those of syslog(). */
    function log(string $message, int $level = LOG_INFO, array $context = []): void {}

    /** The request that is being answered, or null outside of one. */
    function request(): ?Request {}

    /** A request. Every part is read from the gateway's frame when it is first asked for. */
    final class Request
    {
        /** @internal the server makes it; there is one while a request is answered */
        public function __construct() {}
        public function method(): string {}
        /** The path, without the query, not decoded. */
        public function path(): string {}
        /** The request target as it was sent: path and query. */
        public function target(): string {}
        /** The whole URL. */
        public function url(): string {}
        /** "1.0", "1.1" or "2". */
        public function protocol(): string {}
        public function scheme(): string {}
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

    /** An answer. Immutable: with…() gives another one. */
    final class Response
    {
        /**
         * @param string|iterable<string>|\Closure(): (iterable<string>|void)|resource $body what is
         *        sent: all at once, or piece by piece as it comes
         * @param array<string, string|list<string>> $headers
         */
        public function __construct(
            public readonly mixed $body = '',
            public readonly int $status = 200,
            public readonly array $headers = [],
        ) {}
        public static function json(mixed $value, int $status = 200, array $headers = []): self {}
        public static function html(string $body, int $status = 200, array $headers = []): self {}
        public static function text(string $body, int $status = 200, array $headers = []): self {}
        public static function redirect(string $location, int $status = 302): self {}
        /** A file; the gateway sends it. */
        public static function file(string $path, array $headers = []): self {}
        /** Server-sent events: strings, or arrays with data, event, id, retry. */
        public static function events(iterable $events, array $headers = []): self {}
        public function withBody(mixed $body): self {}
        public function withStatus(int $status): self {}
        public function withHeader(string $name, string $value): self {}
        public function withAddedHeader(string $name, string $value): self {}
        public function withCookie(string $name, string $value, array $options = []): self {}
    }

    /** The answer of a fetch. */
    final class FetchResponse
    {
        private function __construct() {}
        public readonly int $status;
        public readonly string $url;
        public readonly string $protocol;
        public readonly string $body;
        /** @var array<string, list<string>> by lower-case name */
        public readonly array $headers;
        public function header(string $name): ?string {}
        /** @throws \JsonException */
        public function json(): mixed {}
        /** Whether the status is below 400. */
        public function ok(): bool {}
    }

    class FetchException extends \RuntimeException
    {
        /** bad_call, resolve, connect, tls, timeout, protocol, redirects, too_large, busy */
        public readonly string $reason;
        public readonly string $url;
    }

    /** The attempt at a task that a handler is called for. */
    final class Task
    {
        private function __construct() {}
        public readonly string $name;
        public readonly string $id;
        /** From 1. */
        public readonly int $attempt;
    }

    class TaskException extends \RuntimeException
    {
        /** busy: the queue is full, or nobody does tasks; task: every attempt failed; too_large */
        public readonly string $reason;
        /** Its name. */
        public readonly string $task;
    }

    /** A worker as an object. */
    interface HttpWorker
    {
        /** Once per worker, before the first request or task. */
        public function onStart(): void;
        /** Answers with what serve() takes; the response is an empty one to begin with. */
        public function onRequest(Request $request, Response $response): mixed;
        /** Does a task, in a task worker; what it returns is the task's result. */
        public function onTask(string $name, mixed $data): mixed;
        /** Hears of a result in the worker that asked for it (the package's Worker::dispatch()). */
        public function onFinish(string $name, mixed $result): void;
        /** Once per worker, when it is to leave. */
        public function onStop(): void;
    }

    /**
     * Records under names, shared by all workers: the gateway's entity store. Every call waits in the
     * gateway; other coroutines go on. In classic mode the worker waits.
     *
     * @throws KVException from every call: the store cannot do it
     */
    final class KV
    {
        /** A namespace of the configuration. */
        public function __construct(string $namespace = 'default') {}
        public function get(string $id): ?string {}
        /**
         * Many at once, in one operation.
         *
         * @param array<string> $ids
         * @return array<string, string> those that are there
         */
        public function getMany(array $ids): array {}
        /** For so many seconds, or for good. */
        public function put(string $id, string $value, ?float $ttl = null): void {}
        /** @param array<string, string> $values */
        public function putMany(array $values, ?float $ttl = null): void {}
        /** Unless there is one; whether there was none. */
        public function add(string $id, string $value, ?float $ttl = null): bool {}
        public function delete(string ...$ids): void {}
        /** The new number; none counts as 0, and then lives for the ttl. */
        public function increment(string $id, int $by = 1, ?float $ttl = null): int {}
        /** Puts the value if the present one is as expected; null stands for none, on both sides. */
        public function compareAndSet(string $id, ?string $expected, ?string $value, ?float $ttl = null): bool {}
        /**
         * From a name to before another, in order, read piece by piece.
         *
         * @return \Generator<string, string>
         */
        public function scan(string $start = '', ?string $end = null): \Generator {}
        /** The lock, or null when another has it for longer than `wait` seconds. It ends with its lease. */
        public function lock(string $name, float $lease = 30.0, float $wait = 0.0): ?Lock {}
    }

    /** A lock of KV::lock(). */
    final class Lock
    {
        private function __construct() {}
        /** Whether it is still held, now for so many seconds more. */
        public function renew(float $lease = 30.0): bool {}
        /** Whether it was still held. */
        public function release(): bool {}
    }

    /** The entity store cannot do it. */
    class KVException extends \RuntimeException
    {
        /** bad_call, no_namespace, forbidden, not_a_number, too_large, overloaded, unreachable, full, failed. */
        public readonly string $reason;
    }

    /** A task on its way. */
    final class Coroutine
    {
        private function __construct() {}
        /** Waits for the end; gives the result or throws what the task threw. */
        public function await(): mixed {}
        public function isDone(): bool {}
        /** Ends the task where it waits. */
        public function cancel(): void {}
    }

    final class Timer
    {
        private function __construct() {}
        public function cancel(): void {}
    }

    /** A connection is in use by another coroutine. */
    final class ConnectionInUse extends \LogicException {}

    /** The request's time is over, or the coroutine was cancelled. */
    final class Cancelled extends \Error {}
}

namespace {

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
     * Sends the headers that are set. With a status of 1xx they go out at once, as an answer before the
     * answer (103 Early Hints), and again with it.
     */
    function headers_send(int $status = 200): int {}

    function frankenphp_log(string $message, int $level = 0, array $context = []): void {}

    function apache_request_headers(): array {}

    /** @alias apache_request_headers */
    function getallheaders(): array {}

    function apache_response_headers(): array {}
}
