<?php

declare(strict_types=1);

namespace Outboard\Tests\Symfony;

use Symfony\Component\Config\Loader\LoaderInterface;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\HttpKernel\Kernel;

/** A kernel without a container that records its calls. */
final class RecordingKernel extends Kernel
{
    /** @var list<string> */
    public array $events = [];

    public ?Request $request = null;

    /** @var (\Closure(): mixed)|null runs while a request is handled */
    public ?\Closure $during = null;

    public function __construct()
    {
        parent::__construct('test', false);
    }

    public function boot(): void
    {
        $this->events[] = 'boot';
    }

    public function handle(Request $request, int $type = self::MAIN_REQUEST, bool $catch = true): Response
    {
        $path = $request->getPathInfo();
        $this->request = $request;
        $this->events[] = "handle $path";
        if ($this->during !== null) {
            ($this->during)();
        }
        return new StreamedResponse(function () use ($path): void {
            $this->events[] = 'send';
            echo "response to $path";
        });
    }

    public function terminate(Request $request, Response $response): void
    {
        $this->events[] = 'terminate ' . $request->getPathInfo();
    }

    public function registerBundles(): iterable
    {
        return [];
    }

    public function registerContainerConfiguration(LoaderInterface $loader): void
    {
    }
}
