<?php

declare(strict_types=1);

namespace Outboard\Psr;

use Outboard\Runtime;
use Outboard\Runtimes;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Serves a PSR-15 handler: in a worker until it is to stop, elsewhere for one request.
 *
 *     Outboard\Psr\Server::run($app);
 */
final class Server
{
    private readonly Factories $factories;

    private readonly Runtime $runtime;

    private readonly RequestReader $reader;

    private readonly Emitter $emitter;

    /** @var \Closure(ServerRequestInterface): ResponseInterface */
    private readonly \Closure $handler;

    /** @param RequestHandlerInterface|callable(ServerRequestInterface): ResponseInterface $handler */
    public function __construct(
        RequestHandlerInterface|callable $handler,
        ?Factories $factories = null,
        ?Runtime $runtime = null,
    ) {
        $this->handler = $handler instanceof RequestHandlerInterface ? $handler->handle(...) : $handler(...);
        $this->factories = $factories ?? Factories::find();
        $this->runtime = $runtime ?? Runtimes::here();
        $this->reader = new RequestReader($this->factories);
        $this->emitter = new Emitter();
    }

    /** @param RequestHandlerInterface|callable(ServerRequestInterface): ResponseInterface $handler */
    public static function run(
        RequestHandlerInterface|callable $handler,
        ?Factories $factories = null,
        ?Runtime $runtime = null,
    ): void {
        (new self($handler, $factories, $runtime))->serve();
    }

    public function serve(): void
    {
        do {
            $continues = $this->runtime->handleRequest($this->handle(...));
        } while ($continues);
    }

    private function handle(): void
    {
        try {
            $request = $this->reader->read($this->runtime->body());
        } catch (\InvalidArgumentException $refused) {
            $this->runtime->log('a request that PSR-7 objects do not take: ' . $refused->getMessage(), LOG_NOTICE);
            $this->sorry(400, 'Bad Request');
            return;
        }
        try {
            $response = ($this->handler)($request);
        } catch (\Throwable $thrown) {
            $this->runtime->log("uncaught $thrown", LOG_ERR);
            $this->sorry(500, 'Internal Server Error');
            return;
        }
        $this->emitter->emit($response, $this->runtime->output(), $request->getMethod() !== 'HEAD');
    }

    private function sorry(int $status, string $sentence): void
    {
        $output = $this->runtime->output();
        $output->head($status, '', ['Content-Type' => ['text/plain; charset=utf-8']]);
        $output->write("$sentence\n");
    }
}
