<?php

declare(strict_types=1);

namespace Outboard\Cache;

/** A key that PSR-6 and PSR-16 do not allow, or too long for the name of a record. */
final class InvalidKey extends \InvalidArgumentException implements \Psr\SimpleCache\InvalidArgumentException, \Psr\Cache\InvalidArgumentException
{
}
