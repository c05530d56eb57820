<?php

namespace Swoole\Coroutine;

use Outboard\Engine\Swoole as Engine;

class WaitGroup
{
    protected int $count = 0;

    /** @var list<int> */
    private array $waiters = [];

    public function __construct(int $delta = 0)
    {
        if ($delta > 0) {
            $this->add($delta);
        }
    }

    public function add(int $delta = 1): void
    {
        if ($this->waiters !== []) {
            throw new \BadMethodCallException('WaitGroup misuse: add() while another coroutine waits');
        }
        if ($this->count + $delta < 0) {
            throw new \InvalidArgumentException('WaitGroup misuse: negative counter');
        }
        $this->count += $delta;
    }

    public function done(): void
    {
        if (--$this->count < 0) {
            throw new \BadMethodCallException('WaitGroup misuse: negative counter');
        }
        if ($this->count === 0) {
            $waiters = $this->waiters;
            $this->waiters = [];
            foreach ($waiters as $waiter) {
                Engine\wake($waiter);
            }
        }
    }

    public function wait(float $timeout = -1): bool
    {
        if ($this->count === 0) {
            return true;
        }
        $waiter = \Outboard\Engine\current();
        $this->waiters[] = $waiter;
        $isDone = Engine\wait($timeout > 0 ? $timeout : -1.0) === 1;
        $this->waiters = array_values(array_diff($this->waiters, [$waiter]));
        return $isDone;
    }

    public function count(): int
    {
        return $this->count;
    }
}
