<?php

declare(strict_types=1);

namespace Outboard\Cache;

/** A key that PSR-6 and PSR-16 forbid, or that is too long for a record's name. */
final class InvalidKey extends \InvalidArgumentException implements \Psr\SimpleCache\InvalidArgumentException, \Psr\Cache\InvalidArgumentException
{
}
