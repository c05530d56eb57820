<?php

namespace Swoole;

class Exception extends \Exception
{
}

class Error extends \Error
{
}

class ExitException extends Exception
{
    public function getStatus(): mixed
    {
        return $this->getCode();
    }

    public function getFlags(): int
    {
        return 0;
    }
}
