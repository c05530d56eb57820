<?php

declare(strict_types=1);

namespace Outboard\Symfony;

use Outboard\Runtime as Host;
use Outboard\Runtimes;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;

/**
 * Serves a Symfony kernel: in a worker many requests, elsewhere one. It needs only symfony/http-kernel.
 *
 *     exit((new KernelRunner(new Kernel('prod', false)))->run());
 *
 * The order is handle, send, and after the response: terminate, reset of the services, collection of cycles.
 * With isolation "rewind" the booted kernel is the snapshot.
 */
final class KernelRunner
{
    private readonly Host $host;

    /** @var array<array-key, mixed> $_SERVER at boot, with Dotenv's variables */
    private readonly array $environment;

    private bool $busy = false;

    /** @param int $loopMax maximum requests of the script; 0: the server decides */
    public function __construct(
        private readonly HttpKernelInterface $kernel,
        private readonly int $loopMax = 0,
        ?Host $host = null,
    ) {
        $this->host = $host ?? Runtimes::here();
        $this->environment = array_filter(
            $_SERVER,
            static fn (int|string $key): bool => !str_starts_with((string) $key, 'HTTP_'),
            ARRAY_FILTER_USE_KEY,
        );
    }

    public function run(): int
    {
        if ($this->host->isWorker()) {
            // A client that disconnects must not end the script for all others.
            ignore_user_abort(true);
            $this->boot();
        }
        $served = 0;
        do {
            $continues = $this->host->handleRequest($this->handle(...));
        } while ($continues && ++$served !== $this->loopMax);
        return 0;
    }

    private function handle(): void
    {
        if ($this->busy) {
            throw new \LogicException(
                "a Symfony kernel handles one request at a time: set concurrency = 1 in the app's [worker] table",
            );
        }
        $this->busy = true;
        $_SERVER += $this->environment;
        if ($this->host->isWorker()) {
            $_SERVER['APP_RUNTIME_MODE'] = 'web=1&worker=1';
        }
        $request = Request::createFromGlobals();
        $response = null;
        $this->host->defer(function () use ($request, &$response): void {
            $this->finish($request, $response);
        });
        $response = $this->kernel->handle($request);
        $response->send();
    }

    /** Without a response the kernel has thrown, and the server has responded. */
    private function finish(Request $request, ?Response $response): void
    {
        try {
            if ($response !== null && $this->kernel instanceof TerminableInterface) {
                $this->kernel->terminate($request, $response);
            }
            if ($this->host->isWorker()) {
                $this->boot();
                gc_collect_cycles();
            }
        } finally {
            $this->busy = false;
        }
    }

    /** For a booted kernel, boot() resets the resettable services (Kernel::boot). */
    private function boot(): void
    {
        if ($this->kernel instanceof KernelInterface) {
            $this->kernel->boot();
        }
    }
}
