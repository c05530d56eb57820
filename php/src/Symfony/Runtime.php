<?php

declare(strict_types=1);

namespace Outboard\Symfony;

use Outboard\Runtimes;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\Runtime\RunnerInterface;
use Symfony\Component\Runtime\SymfonyRuntime;

/**
 * symfony/runtime under Outboard: APP_RUNTIME=Outboard\Symfony\Runtime, or extra.runtime.class in
 * composer.json. public/index.php needs no change; outside of a worker this is SymfonyRuntime.
 *
 * The option outboard_loop_max is KernelRunner's loopMax.
 */
class Runtime extends SymfonyRuntime
{
    private readonly int $loopMax;

    /** @param array<string, mixed> $options */
    public function __construct(array $options = [])
    {
        $loopMax = $options['outboard_loop_max'] ?? 0;
        $this->loopMax = is_numeric($loopMax) ? max(0, (int) $loopMax) : 0;
        parent::__construct($options);
    }

    public function getRunner(?object $application): RunnerInterface
    {
        $host = Runtimes::here();
        if ($application instanceof HttpKernelInterface && $host->isWorker()) {
            return new Runner(new KernelRunner($application, $this->loopMax, $host));
        }
        return parent::getRunner($application);
    }
}
