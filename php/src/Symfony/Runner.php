<?php

declare(strict_types=1);

namespace Outboard\Symfony;

use Symfony\Component\Runtime\RunnerInterface;

/** A KernelRunner as a runner of symfony/runtime. */
final class Runner implements RunnerInterface
{
    public function __construct(private readonly KernelRunner $runner)
    {
    }

    public function run(): int
    {
        return $this->runner->run();
    }
}
