<?php

namespace Outboard\Engine\Swoole;

/** @internal reads a Coroutine\Socket by lines, messages and exact lengths, with a buffer in between */
trait SocketReader
{
    /** What was received and not returned yet. */
    private string $read = '';

    public function recvWithBuffer(int $length = self::READ_LENGTH, float $timeout = 0): string|false
    {
        if ($this->read === '') {
            $piece = $this->receive(max($length, self::READ_LENGTH), $this->until($timeout, SWOOLE_EVENT_READ));
            if ($piece === false || $piece === '') {
                return $piece;
            }
            $this->read = $piece;
        }
        return $this->take($length);
    }

    public function recvAll(int $length = self::READ_LENGTH, float $timeout = 0): string|false
    {
        $until = $this->until($timeout, SWOOLE_EVENT_READ);
        $all = '';
        while (strlen($all) < $length) {
            $piece = $this->receive($length - strlen($all), $until);
            if ($piece === false || $piece === '') {
                return $all === '' ? $piece : $all;
            }
            $all .= $piece;
        }
        return $all;
    }

    /** Up to and including the end of a line, which is either of its two characters. */
    public function recvLine(int $length = self::READ_LENGTH, float $timeout = 0): string|false
    {
        return $this->readTo("\r\n", $length, $timeout);
    }

    /** @internal up to and including one of these characters */
    public function readTo(string $ends, int $length, float $timeout): string|false
    {
        $until = $this->until($timeout, SWOOLE_EVENT_READ);
        while (($at = strcspn($this->read, $ends)) === strlen($this->read) && $at < $length) {
            $piece = $this->more($until);
            if ($piece === false || $piece === '') {
                return $this->read === '' ? $piece : $this->take($length);
            }
        }
        return $this->take(min($at + 1, $length));
    }

    /** The next whole message, by the options of setProtocol(). */
    public function recvPacket(float $timeout = 0): string|false
    {
        $until = $this->until($timeout, SWOOLE_EVENT_READ);
        while (true) {
            $length = first_message($this->read, $this->setting);
            if ($length === -1) {
                $this->read = '';
                return $this->fail(SWOOLE_ERROR_PACKAGE_LENGTH_TOO_LARGE);
            }
            if ($length !== null && strlen($this->read) >= $length) {
                return $this->take($length);
            }
            $piece = $this->more($until);
            if ($piece === false || $piece === '') {
                return $piece;
            }
        }
    }

    public function readVector(array $io_vector, float $timeout = 0): array|false
    {
        $data = $this->recv(array_sum($io_vector), $timeout);
        return $data === false ? false : self::distribute($data, $io_vector);
    }

    public function readVectorAll(array $io_vector, float $timeout = 0): array|false
    {
        $data = $this->recvAll(array_sum($io_vector), $timeout);
        return $data === false ? false : self::distribute($data, $io_vector);
    }

    private static function distribute(string $data, array $lengths): array
    {
        $pieces = [];
        foreach ($lengths as $length) {
            if ($data === '') {
                break;
            }
            $pieces[] = substr($data, 0, $length);
            $data = substr($data, $length);
        }
        return $pieces;
    }

    /** @internal puts back what was read of the next message */
    public function unread(string $data): void
    {
        $this->read = $data . $this->read;
    }

    private function take(int $length): string
    {
        $data = substr($this->read, 0, $length);
        $this->read = substr($this->read, strlen($data));
        return $data;
    }

    private function more(float $until): string|false
    {
        $read = $this->read;
        $this->read = '';
        $piece = $this->receive(self::READ_LENGTH, $until);
        $this->read = $read . $piece;
        return $piece;
    }
}
