<?php

namespace product;

/**
 * Runs generators as coroutines: each yields what it waits for, an Async or another generator, and
 * is continued with the result.
 */
class Scheduler
{
    /** @var \Generator[] the innermost last */
    private $stack;

    private $done;

    private function __construct(\Generator $generator, callable $done)
    {
        $this->stack = [$generator];
        $this->done = $done;
    }

    /** Calls $done($error, $result) at the end. */
    public static function run(\Generator $generator, callable $done)
    {
        (new self($generator, $done))->advance(function ($generator) {
            return $generator->current();
        });
    }

    private function advance(callable $step)
    {
        $generator = end($this->stack);
        try {
            $yielded = $step($generator);
            if (!$generator->valid()) {
                return $this->leave(null, $generator->getReturn());
            }
        } catch (\Throwable $error) {
            return $this->leave($error, null);
        }
        if ($yielded instanceof \Generator) {
            $this->stack[] = $yielded;
            return $this->advance(function ($generator) {
                return $generator->current();
            });
        }
        if (!$yielded instanceof async\Client) {
            return $this->resume(null, $yielded);
        }
        $yielded->fetch(function ($error, $result) {
            $this->resume($error, $result);
        });
    }

    private function resume($error, $result)
    {
        $this->advance(function ($generator) use ($error, $result) {
            return $error ? $generator->throw($error) : $generator->send($result);
        });
    }

    private function leave($error, $result)
    {
        array_pop($this->stack);
        if ($this->stack) {
            return $this->resume($error, $result);
        }
        call_user_func($this->done, $error, $result);
    }
}
