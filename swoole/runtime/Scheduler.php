<?php

namespace Swoole\Coroutine;

use Outboard\Engine\Swoole as Engine;
use Swoole\Coroutine;

class Scheduler
{
    /** @var list<array{callable, array}> */
    private array $tasks = [];

    public function add(callable $func, mixed ...$params): bool
    {
        $this->tasks[] = [$func, $params];
        return true;
    }

    public function parallel(int $n, callable $func, mixed ...$params): bool
    {
        for ($i = 0; $i < $n; $i++) {
            $this->add($func, ...$params);
        }
        return true;
    }

    public function set(array $options): void
    {
        Coroutine::set($options);
    }

    public function getOptions(): ?array
    {
        return Coroutine::getOptions();
    }

    public function start(): bool
    {
        if (Engine\id() !== -1 || !Engine\is_main()) {
            trigger_error('eventLoop has already been created. unable to start Swoole\Coroutine\Scheduler', E_USER_WARNING);
            return false;
        }
        $tasks = $this->tasks;
        $this->tasks = [];
        foreach ($tasks as [$func, $params]) {
            Coroutine::create($func, ...$params);
        }
        Engine\run();
        return true;
    }
}

function run(callable $func, mixed ...$args): bool
{
    $scheduler = new Scheduler();
    $scheduler->add($func, ...$args);
    return $scheduler->start();
}

namespace Co;

function run(callable $func, mixed ...$args): bool
{
    return \Swoole\Coroutine\run($func, ...$args);
}
