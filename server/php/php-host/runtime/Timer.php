<?php

namespace Outboard;

final class Timer
{
    private int $id;

    /** @internal */
    public function __construct(private float $seconds, callable $callback, private bool $again)
    {
        $this->id = Engine\timer($seconds, function () use ($callback): void {
            if (!$this->again) {
                Engine\timer_cancel($this->id);
            }
            try {
                $callback();
            } finally {
                if ($this->again) {
                    Engine\timer_again($this->id, $this->seconds);
                }
            }
        });
    }

    public function cancel(): void
    {
        $this->again = false;
        Engine\timer_cancel($this->id);
    }
}
