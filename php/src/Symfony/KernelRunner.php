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
 * Serves a Symfony kernel: in a worker request after request, elsewhere the one request. It needs
 * symfony/http-kernel alone.
 *
 *     exit((new KernelRunner(new Kernel('prod', false)))->run());
 *
 * The order is handle, send, and once the answer has left: terminate, reset of the services,
 * collection of cycles. With isolation "fork" the booted kernel is the snapshot.
 */
final class KernelRunner
{
    private readonly Host $host;

    /** @var array<array-key, mixed> what $_SERVER held at boot, Dotenv's variables among it */
    private readonly array $environment;

    private bool $busy = false;

    /** @param int $loopMax requests until the script ends by itself; 0: the server decides */
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
            // A client that leaves must not end the script of all others.
            ignore_user_abort(true);
            $this->boot();
        }
        $served = 0;
        do {
            $goesOn = $this->host->handleRequest($this->answer(...));
        } while ($goesOn && ++$served !== $this->loopMax);
        return 0;
    }

    private function answer(): void
    {
        if ($this->busy) {
            throw new \LogicException(
                "a Symfony kernel answers one request at a time: set concurrency = 1 in the app's [worker] table",
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

    /** Without a response the kernel has thrown; the server has answered for it. */
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

    /** Of a kernel that is booted, boot() resets the services which ask for it (Kernel::boot). */
    private function boot(): void
    {
        if ($this->kernel instanceof KernelInterface) {
            $this->kernel->boot();
        }
    }
}
