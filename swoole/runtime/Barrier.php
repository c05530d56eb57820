<?php

namespace Swoole\Coroutine;

use Outboard\Engine\Swoole as Engine;

class Barrier
{
    private \stdClass $state;

    private function __construct()
    {
        $this->state = (object) ['waiter' => 0, 'gone' => false];
    }

    public function __destruct()
    {
        $this->state->gone = true;
        if ($this->state->waiter !== 0) {
            Engine\wake($this->state->waiter);
        }
    }

    public static function make(): static
    {
        return new static();
    }

    public static function wait(?self &$barrier, float $timeout = -1): void
    {
        if ($barrier === null) {
            return;
        }
        $state = $barrier->state;
        if ($state->waiter !== 0) {
            throw new \Swoole\Exception('The barrier is waiting, and can not be waited again');
        }
        $barrier = null;
        if (!$state->gone) {
            $state->waiter = \Outboard\Engine\current();
            if (Engine\wait($timeout > 0 ? $timeout : -1.0) !== 1) {
                $state->waiter = 0;
            }
        }
    }
}
