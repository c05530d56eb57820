<?php

declare(strict_types=1);

namespace Outboard\Cache;

/** A key that PSR-16 does not allow. */
final class InvalidKey extends \InvalidArgumentException implements \Psr\SimpleCache\InvalidArgumentException, \Psr\Cache\InvalidArgumentException
{
}
