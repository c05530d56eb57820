<?php
/** A bounded pool of connections, each used by one coroutine at a time. */
final class Pool
{
    /** @var list<mysqli> */
    private array $idle = [];
    private int $open = 0;

    public function __construct(private int $most, private Closure $connect)
    {
    }

    public function with(Closure $use): mixed
    {
        $connection = $this->take();
        try {
            return $use($connection);
        } finally {
            $this->idle[] = $connection;
        }
    }

    private function take(): mysqli
    {
        while ($this->idle === []) {
            if ($this->open < $this->most) {
                $this->open++;
                return ($this->connect)();
            }
            Outboard\sleep(0.001);
        }
        return array_pop($this->idle);
    }
}
